//go:build !noffmpeg

#include "shim.h"

#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void nvc_frame_props(const AVFrame *f, nvc_props *p) {
  p->range_ = f->color_range;
  p->primaries = f->color_primaries;
  p->transfer = f->color_trc;
  p->matrix = f->colorspace;
  p->location = f->chroma_location;
  p->best = f->best_effort_timestamp;
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  p->interlaced = !!(f->flags & AV_FRAME_FLAG_INTERLACED);
  p->top_first = !!(f->flags & AV_FRAME_FLAG_TOP_FIELD_FIRST);
  p->key = !!(f->flags & AV_FRAME_FLAG_KEY);
#else
  p->interlaced = f->interlaced_frame;
  p->top_first = f->top_field_first;
  p->key = f->key_frame;
#endif
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  p->duration = f->duration;
#else
  p->duration = f->pkt_duration;
#endif
  p->corrupt = (f->flags & AV_FRAME_FLAG_CORRUPT) || f->decode_error_flags;
}

void nvc_frame_tag(AVFrame *f, int range_, int primaries, int transfer, int matrix, int location, int64_t duration) {
  f->color_range = range_;
  f->color_primaries = primaries;
  f->color_trc = transfer;
  f->colorspace = matrix;
  f->chroma_location = location;
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  f->duration = duration;
#else
  f->pkt_duration = duration;
#endif
}

void nvc_frame_interlaced(AVFrame *f, int interlaced, int top_first) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  f->flags &= ~(AV_FRAME_FLAG_INTERLACED | AV_FRAME_FLAG_TOP_FIELD_FIRST);
  f->flags |= (interlaced ? AV_FRAME_FLAG_INTERLACED : 0) | (top_first ? AV_FRAME_FLAG_TOP_FIELD_FIRST : 0);
#else
  f->interlaced_frame = interlaced;
  f->top_field_first = top_first;
#endif
}

// The yuvj formats are the yuv ones with full range; filters treat the range of the two differently, so only the latter
// go on. Returns whether it changed something.
int nvc_frame_relabel(AVFrame *f) {
  enum AVPixelFormat to;
  switch (f->format) {
  case AV_PIX_FMT_YUVJ420P: to = AV_PIX_FMT_YUV420P; break;
  case AV_PIX_FMT_YUVJ422P: to = AV_PIX_FMT_YUV422P; break;
  case AV_PIX_FMT_YUVJ444P: to = AV_PIX_FMT_YUV444P; break;
  case AV_PIX_FMT_YUVJ440P: to = AV_PIX_FMT_YUV440P; break;
  case AV_PIX_FMT_YUVJ411P: to = AV_PIX_FMT_YUV411P; break;
  default: return 0;
  }
  f->format = to;
  f->color_range = AVCOL_RANGE_JPEG;
  return 1;
}

int nvc_plane_rows(const AVFrame *f, int i) {
  const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(f->format);
  if (!d || i < 0 || i >= av_pix_fmt_count_planes(f->format)) return 0;
  return (i == 1 || i == 2) ? AV_CEIL_RSHIFT(f->height, d->log2_chroma_h) : f->height;
}

int nvc_plane_bytes(const AVFrame *f, int i) { return av_image_get_linesize(f->format, f->width, i); }

void nvc_copy_plane(uint8_t *dst, int dst_stride, const AVFrame *f, int i, int bytes, int rows) {
  av_image_copy_plane(dst, dst_stride, f->data[i], f->linesize[i], bytes, rows);
}

void nvc_fill_plane(AVFrame *f, int i, const uint8_t *src, int src_stride, int bytes, int rows) {
  av_image_copy_plane(f->data[i], f->linesize[i], src, src_stride, bytes, rows);
}

int nvc_pixfmt_info(int format, nvc_pixfmt *p) {
  const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(format);
  if (!d) return 0;
  memset(p, 0, sizeof *p);
  p->name = d->name;
  p->components = d->nb_components;
  for (int i = 0; i < d->nb_components; i++)
    if (d->comp[i].depth > p->depth) p->depth = d->comp[i].depth;
  p->log2_w = d->log2_chroma_w;
  p->log2_h = d->log2_chroma_h;
  p->rgb = !!(d->flags & AV_PIX_FMT_FLAG_RGB);
  p->alpha = !!(d->flags & AV_PIX_FMT_FLAG_ALPHA);
  p->palette = !!(d->flags & AV_PIX_FMT_FLAG_PAL);
  p->hardware = !!(d->flags & AV_PIX_FMT_FLAG_HWACCEL);
  return 1;
}

int nvc_stream_attached(AVFormatContext *f, int i) { return !!(f->streams[i]->disposition & AV_DISPOSITION_ATTACHED_PIC); }

void nvc_stream_discard(AVFormatContext *f, int i) { f->streams[i]->discard = AVDISCARD_ALL; }

int nvc_duration_stated(AVFormatContext *f) {
  return f->duration != AV_NOPTS_VALUE && f->duration_estimation_method == AVFMT_DURATION_FROM_STREAM;
}

int nvc_timestamps_jump(AVFormatContext *f) { return !!(f->iformat->flags & AVFMT_TS_DISCONT); }

int nvc_pb_error(AVFormatContext *f) { return f->pb ? f->pb->error : 0; }

void nvc_decoder_setup(AVCodecContext *c, AVRational pkt_timebase) { c->pkt_timebase = pkt_timebase; }

// The log: the newest lines win, since the last words before a failure tell its cause.

enum { LINES = 64, LINE = 512 };

struct nvc_log {
  int first, count;
  int level[LINES];
  char line[LINES][LINE];
};

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

// A codec's frame threads work on copies of its context, opaque included, so their messages are found too.
static nvc_log *log_of(void *context) {
  const AVClass *class = context ? *(const AVClass **)context : NULL;
  if (class == avcodec_get_class()) return ((AVCodecContext *)context)->opaque;
  if (class == avformat_get_class()) return ((AVFormatContext *)context)->opaque;
  return NULL;
}

static void log_callback(void *context, int level, const char *format, va_list args) {
  if (level < 0 || (level & 0xff) > AV_LOG_WARNING) return;
  nvc_log *l = log_of(context);
  if (!l) return;
  char line[LINE];
  int prefix = 0; // no "[mov @ 0x55…]": addresses would differ from run to run
  av_log_format_line2(context, level, format, args, line, sizeof line, &prefix);
  size_t n = strcspn(line, "\r\n");
  line[n] = 0;
  if (!n) return;
  pthread_mutex_lock(&log_mutex);
  if (l->count == LINES) {
    l->first = (l->first + 1) % LINES;
    l->count--;
  }
  int i = (l->first + l->count++) % LINES;
  memcpy(l->line[i], line, n + 1);
  l->level[i] = level & 0xff;
  pthread_mutex_unlock(&log_mutex);
}

void nvc_log_install(void) { av_log_set_callback(log_callback); }

nvc_log *nvc_log_new(void) { return calloc(1, sizeof(nvc_log)); }

void nvc_log_free(nvc_log *l) { free(l); }

int nvc_log_take(nvc_log *l, char *line, int size, int *level) {
  int took = 0;
  pthread_mutex_lock(&log_mutex);
  if (l->count) {
    strncpy(line, l->line[l->first], size - 1);
    line[size - 1] = 0;
    *level = l->level[l->first];
    l->first = (l->first + 1) % LINES;
    l->count--;
    took = 1;
  }
  pthread_mutex_unlock(&log_mutex);
  return took;
}

void nvc_log_attach_format(nvc_log *l, AVFormatContext *f) { f->opaque = l; }

void nvc_log_attach_codec(nvc_log *l, AVCodecContext *c) { c->opaque = l; }

struct nvc_intr {
  atomic_int set;
};

static int intr_callback(void *p) { return atomic_load(&((nvc_intr *)p)->set); }

nvc_intr *nvc_intr_new(void) { return calloc(1, sizeof(nvc_intr)); }

void nvc_intr_free(nvc_intr *i) { free(i); }

void nvc_intr_attach(nvc_intr *i, AVFormatContext *f) {
  f->interrupt_callback.callback = intr_callback;
  f->interrupt_callback.opaque = i;
}

void nvc_intr_set(nvc_intr *i) { atomic_store(&i->set, 1); }
