// What go-astiav does not give: one source for FFmpeg 5.1 and 7.x.
#ifndef NVC_AV_SHIM_H
#define NVC_AV_SHIM_H

#include <libavcodec/avcodec.h>
#include <libavfilter/avfilter.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>

// Fields of a frame, read in one call.
typedef struct nvc_props {
  int64_t best, duration;
  int range_, primaries, transfer, matrix, location;
  int interlaced, top_first, key, corrupt;
} nvc_props;
void nvc_frame_props(const AVFrame *f, nvc_props *p);
void nvc_frame_tag(AVFrame *f, int range_, int primaries, int transfer, int matrix, int location, int64_t duration);
void nvc_frame_interlaced(AVFrame *f, int interlaced, int top_first);
int nvc_frame_relabel(AVFrame *f);

int nvc_plane_rows(const AVFrame *f, int i);
int nvc_plane_bytes(const AVFrame *f, int i);
void nvc_copy_plane(uint8_t *dst, int dst_stride, const AVFrame *f, int i, int bytes, int rows);
void nvc_fill_plane(AVFrame *f, int i, const uint8_t *src, int src_stride, int bytes, int rows);

// What a pixel format is made of.
typedef struct nvc_pixfmt {
  const char *name;
  int depth, log2_w, log2_h, components, rgb, alpha, palette, hardware;
} nvc_pixfmt;
int nvc_pixfmt_info(int format, nvc_pixfmt *p);

int nvc_stream_attached(AVFormatContext *f, int i);
void nvc_stream_discard(AVFormatContext *f, int i);
int nvc_duration_stated(AVFormatContext *f);
int nvc_timestamps_jump(AVFormatContext *f);
int nvc_pb_error(AVFormatContext *f);
void nvc_decoder_setup(AVCodecContext *c, AVRational pkt_timebase);

// Messages of one file's contexts, kept in C so that no Go code runs on libav's threads.
typedef struct nvc_log nvc_log;
void nvc_log_install(void);
nvc_log *nvc_log_new(void);
void nvc_log_free(nvc_log *l);
int nvc_log_take(nvc_log *l, char *line, int size, int *level);
void nvc_log_attach_format(nvc_log *l, AVFormatContext *f);
void nvc_log_attach_codec(nvc_log *l, AVCodecContext *c);

// A flag in C memory that ends libav's waiting.
typedef struct nvc_intr nvc_intr;
nvc_intr *nvc_intr_new(void);
void nvc_intr_free(nvc_intr *i);
void nvc_intr_attach(nvc_intr *i, AVFormatContext *f);
void nvc_intr_set(nvc_intr *i);

#endif
