// Motion search, scene cuts and padding: the same code for every device.
// families: 61
#include "motion_choose.cuh"
#include "motion_cut.cuh"
#include "motion_pad.cuh"
#include "motion_phases.cuh"
