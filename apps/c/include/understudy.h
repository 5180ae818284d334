// Understudy's run time: twins of film rigs, played by any engine. Made from apps/c/src; do not edit.
//
// Everything that can fail gives a status (0: fine) or NULL, and understudy_last_error() says why, in the same words as
// the command line. Lengths are centimetres, Y is up. Handles are used by one thread at a time; a twin may be shared.
// Arrays that are written must not overlap those that are read.


#ifndef UNDERSTUDY_H
#define UNDERSTUDY_H

#include <stddef.h>
#include <stdint.h>

// How a call ended. What went wrong is told by `understudy_last_error`.
typedef enum {
    // Done.
    UNDERSTUDY_STATUS_OK = 0,
    // A handle or an array is NULL.
    UNDERSTUDY_STATUS_NULL = 1,
    // A wrong length, a number that is not finite, a file that is damaged.
    UNDERSTUDY_STATUS_BAD_INPUT = 2,
    // A bug of ours: please report it.
    UNDERSTUDY_STATUS_INTERNAL = 3,
} UnderstudyStatus;

// What the controls of a pose are: `UNDERSTUDY_CONTROLS_POSING` are all that pose the twin without bones,
// `UNDERSTUDY_CONTROLS_EXTRA` those that matter beside its bones.
typedef enum {
    // For `understudy_pose_controls`.
    UNDERSTUDY_CONTROLS_POSING = 0,
    // For `understudy_pose_bones`.
    UNDERSTUDY_CONTROLS_EXTRA = 1,
} UnderstudyControls;

// How a handle reached its target.
typedef enum {
    // It is there.
    UNDERSTUDY_REACH_EXACT = 0,
    // It stays behind the target on purpose: a soft reach.
    UNDERSTUDY_REACH_SOFT = 1,
    // The limb is straight and too short.
    UNDERSTUDY_REACH_TOO_FAR = 2,
    // The limb is folded, and the target is nearer than its bones' difference.
    UNDERSTUDY_REACH_TOO_NEAR = 3,
} UnderstudyReach;

// Somebody who plays a motion: one for each thread or character.
typedef struct UnderstudyCharacter UnderstudyCharacter;

// Memory to pose a twin by its points: one for each thread or character.
typedef struct UnderstudyIk UnderstudyIk;

// The handles of a body, and memory to move them: one for each thread or character.
typedef struct UnderstudyLimbs UnderstudyLimbs;

// A file of motion, loaded and checked. Characters share it; it may be freed while they live.
typedef struct UnderstudyMotion UnderstudyMotion;

// A twin with the memory to play it: one for each thread or character.
typedef struct UnderstudyPlayer UnderstudyPlayer;

// A twin: a file, loaded and checked. Players share it; it may be freed while they live.
typedef struct UnderstudyTwin UnderstudyTwin;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this library, such as "0.2.0".
const char *understudy_version(void);

// The newest format of twins' files that this library reads.
uint32_t understudy_format(void);

// What went wrong in the last call of this thread that failed; empty before the first. It holds until the next call of
// this thread that fails.
const char *understudy_last_error(void);

// A solver for a twin's points; NULL where its file has none.
//
// # Safety
// `twin` is NULL or a live handle.
UnderstudyIk *understudy_ik_new(const UnderstudyTwin *twin);

// Frees a solver. NULL is nothing.
//
// # Safety
// `ik` is NULL, or came from `understudy_ik_new` and was not freed.
void understudy_ik_free(UnderstudyIk *ik);

// The name of a point; NULL where there is no such point. Lives as long as the solver.
//
// # Safety
// `ik` is NULL or a live handle.
const char *understudy_ik_point_name(const UnderstudyIk *ik, size_t point);

// Where the points rest: x, y, z each, cm.
//
// # Safety
// `ik` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
UnderstudyStatus understudy_ik_rest(const UnderstudyIk *ik, float *out, size_t length);

// Controls that bring all points to about their targets (x, y, z each, cm): the networks alone, or with so many
// corrections through the twin's derivatives.
//
// # Safety
// `ik` is NULL or a live handle; arrays are NULL or as long as promised.
UnderstudyStatus understudy_ik_solve(UnderstudyIk *ik,
                                     const float *targets,
                                     size_t target_length,
                                     size_t corrections,
                                     float *controls,
                                     size_t control_length);

// The hands, feet and torso of a twin's bones: found by usual names, or as `spelling` says, in JSON:
// `{"hand_L": ["arm", "elbow", "wrist"], "torso": "pelvis"}` (from the trunk outwards; NULL: usual names alone). NULL where
// there is none.
//
// # Safety
// `twin` is NULL or a live handle; `spelling` is NULL or a text that ends with NUL.
UnderstudyLimbs *understudy_limbs_new(const UnderstudyTwin *twin,
                                      const char *spelling);

// Frees handles. NULL is nothing.
//
// # Safety
// `limbs` is NULL, or came from `understudy_limbs_new` and was not freed.
void understudy_limbs_free(UnderstudyLimbs *limbs);

// How many handles there are, five at most of a body with usual names; 0 where `limbs` is NULL.
//
// # Safety
// `limbs` is NULL or a live handle.
size_t understudy_limbs_count(const UnderstudyLimbs *limbs);

// The name of a handle: `hand_L`, `hand_R`, `foot_L`, `foot_R` or `torso`; NULL where there is no such handle. Lives as
// long as the handles.
//
// # Safety
// `limbs` is NULL or a live handle.
const char *understudy_limbs_name(const UnderstudyLimbs *limbs,
                                  size_t handle);

// The bone that a handle holds; -2 where there is no such handle.
//
// # Safety
// `limbs` is NULL or a live handle.
int64_t understudy_limbs_bone(const UnderstudyLimbs *limbs, size_t handle);

// Puts a handle on a target (x, y, z in cm) and changes the world transforms of all bones for it: those below a limb
// follow rigidly, the torso takes everything along. To lock a foot, move the torso first and reach for where the foot was.
//
// `pole`: the direction in which the elbow or knee points (three numbers), or NULL: as it does now; of a straight limb
// elbows go back (-Z) and knees forward (+Z). `soft`: the share of the limb's length, up to 0.5, before it is straight in
// which it slows down. `keep`: not 0 where the hand or foot keeps its orientation. `reach` (may be NULL): an
// `UnderstudyReach`. Of the torso only the target counts. `matrices` stay as they were where the call fails.
//
// # Safety
// `limbs` is NULL or a live handle; arrays are NULL or as long as promised; `reach` is NULL or leads to a number.
UnderstudyStatus understudy_limbs_reach(UnderstudyLimbs *limbs,
                                        size_t handle,
                                        const float *target,
                                        size_t target_length,
                                        const float *pole,
                                        size_t pole_length,
                                        float soft,
                                        int32_t keep,
                                        float *matrices,
                                        size_t matrix_length,
                                        int32_t *reach);

// Reads a file of motion (a path in UTF-8) and checks everything about it. NULL where that fails.
//
// # Safety
// `path` is NULL or a text that ends with NUL.
UnderstudyMotion *understudy_motion_load(const char *path);

// The same of a file in memory, which may go afterwards.
//
// # Safety
// `bytes` is NULL or leads to `length` bytes.
UnderstudyMotion *understudy_motion_parse(const uint8_t *bytes, size_t length);

// Frees a motion; characters that were made of it go on. NULL is nothing.
//
// # Safety
// `motion` is NULL, or came from `understudy_motion_load` or `_parse` and was not freed.
void understudy_motion_free(UnderstudyMotion *motion);

// What the motion is (rig, rate, controls, labels with their clips), as JSON. Lives as long as the motion; NULL where
// `motion` is NULL.
//
// # Safety
// `motion` is NULL or a live handle.
const char *understudy_motion_describe(const UnderstudyMotion *motion);

// The rig whose controls it moves. Lives as long as the motion.
//
// # Safety
// `motion` is NULL or a live handle.
const char *understudy_motion_rig(const UnderstudyMotion *motion);

// Frames per second; 0 where `motion` is NULL.
//
// # Safety
// `motion` is NULL or a live handle.
float understudy_motion_rate(const UnderstudyMotion *motion);

// Controls of a frame; 0 where `motion` is NULL.
//
// # Safety
// `motion` is NULL or a live handle.
size_t understudy_motion_control_count(const UnderstudyMotion *motion);

// The name of a control; NULL where there is no such control. Lives as long as the motion.
//
// # Safety
// `motion` is NULL or a live handle.
const char *understudy_motion_control_name(const UnderstudyMotion *motion, size_t control);

// A character that plays a motion: it begins at the first frame of a label (NULL: of the first label). The same seed and
// commands give the same frames. NULL where that fails.
//
// # Safety
// `motion` is NULL or a live handle; `label` is NULL or a text that ends with NUL.
UnderstudyCharacter *understudy_character_new(const UnderstudyMotion *motion,
                                              const char *label,
                                              uint64_t seed);

// Frees a character. NULL is nothing.
//
// # Safety
// `character` is NULL, or came from `understudy_character_new` and was not freed.
void understudy_character_free(UnderstudyCharacter *character);

// Does something after what it does now: a command as JSON, such as `{"command":"transition","label":"happy"}`.
//
// # Safety
// `character` is NULL or a live handle; `json` is NULL or a text that ends with NUL.
UnderstudyStatus understudy_character_command(UnderstudyCharacter *character,
                                              const char *json);

// Does all that a script says, or, where a line of it is wrong, nothing: `transition happy; idle 2s; play nod`.
//
// # Safety
// `character` is NULL or a live handle; `script` is NULL or a text that ends with NUL.
UnderstudyStatus understudy_character_script(UnderstudyCharacter *character,
                                             const char *script);

// So many frames on, of which `understudy_motion_rate` make a second. Allocates nothing but in a frame in which a command begins.
//
// # Safety
// `character` is NULL or a live handle.
UnderstudyStatus understudy_character_step(UnderstudyCharacter *character,
                                           uint32_t frames);

// The controls of the last frame, in the order of the motion's; of the first pose before any.
//
// # Safety
// `character` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
UnderstudyStatus understudy_character_controls(const UnderstudyCharacter *character,
                                               float *out,
                                               size_t length);

// Where it stands after the last frame, as JSON: label, what it does and whether commands are left ("busy"), its place in the
// label's space. Lives until the next call with this character; NULL where `character` is NULL.
//
// # Safety
// `character` is NULL or a live handle.
const char *understudy_character_situation(UnderstudyCharacter *character);

// A player of a twin on so many threads, the caller's included (0 counts as 1). NULL where `twin` is NULL.
//
// # Safety
// `twin` is NULL or a live handle.
UnderstudyPlayer *understudy_player_new(const UnderstudyTwin *twin, size_t threads);

// Frees a player. NULL is nothing.
//
// # Safety
// `player` is NULL, or came from `understudy_player_new` and was not freed.
void understudy_player_free(UnderstudyPlayer *player);

// Moves the vertices for `poses` poses (1, or a crowd) by controls alone: all posing controls, in their order, pose after
// pose. `out`: x, y, z per vertex, cm.
//
// # Safety
// `player` is NULL or a live handle; arrays are NULL or as long as promised.
UnderstudyStatus understudy_pose_controls(UnderstudyPlayer *player,
                                          const float *controls,
                                          size_t control_length,
                                          size_t poses,
                                          float *out,
                                          size_t out_length);

// The same by bones (world transforms, 4×4 matrices by columns, cm) and the extra controls that matter beside them.
//
// # Safety
// `player` is NULL or a live handle; arrays are NULL or as long as promised.
UnderstudyStatus understudy_pose_bones(UnderstudyPlayer *player,
                                       const float *matrices,
                                       size_t matrix_length,
                                       const float *extras,
                                       size_t extra_length,
                                       size_t poses,
                                       float *out,
                                       size_t out_length);

// Unit normals of the pose that was played last, whose vertices are given.
//
// # Safety
// `player` is NULL or a live handle; arrays are NULL or as long as promised.
UnderstudyStatus understudy_normals(UnderstudyPlayer *player,
                                    const float *vertices,
                                    size_t vertex_length,
                                    float *out,
                                    size_t out_length);

// The derivative of a loss by the posing controls at a pose of controls, from its derivative by the vertices.
//
// # Safety
// `player` is NULL or a live handle; arrays are NULL or as long as promised.
UnderstudyStatus understudy_gradient(UnderstudyPlayer *player,
                                     const float *controls,
                                     size_t control_length,
                                     const float *by_vertices,
                                     size_t vertex_length,
                                     float *out,
                                     size_t out_length);

// Reads a twin's file (a path in UTF-8) and checks everything about it. NULL where that fails.
//
// # Safety
// `path` is NULL or a text that ends with NUL.
UnderstudyTwin *understudy_twin_load(const char *path);

// The same of a file in memory, which may go afterwards.
//
// # Safety
// `bytes` is NULL or leads to `length` bytes.
UnderstudyTwin *understudy_twin_parse(const uint8_t *bytes, size_t length);

// Frees a twin; players that were made of it go on. NULL is nothing.
//
// # Safety
// `twin` is NULL, or came from `understudy_twin_load` or `_parse` and was not freed.
void understudy_twin_free(UnderstudyTwin *twin);

// Vertices that it moves; 0 where `twin` is NULL, as of all counts.
//
// # Safety
// `twin` is NULL or a live handle.
size_t understudy_twin_vertex_count(const UnderstudyTwin *twin);

// Faces of its mesh.
//
// # Safety
// `twin` is NULL or a live handle.
size_t understudy_twin_face_count(const UnderstudyTwin *twin);

// Bones that pose it; 0 for a twin of controls alone.
//
// # Safety
// `twin` is NULL or a live handle.
size_t understudy_twin_bone_count(const UnderstudyTwin *twin);

// Points that can be dragged; 0 where its file has none (`understudy learn ik` makes them).
//
// # Safety
// `twin` is NULL or a live handle.
size_t understudy_twin_point_count(const UnderstudyTwin *twin);

// How many controls a pose has.
//
// # Safety
// `twin` is NULL or a live handle.
size_t understudy_twin_control_count(const UnderstudyTwin *twin, int32_t which);

// Everything that the twin says about itself (rig, kind, inputs, training), as JSON. It lives as long as the twin; NULL
// where `twin` is NULL.
//
// # Safety
// `twin` is NULL or a live handle.
const char *understudy_twin_describe(const UnderstudyTwin *twin);

// The rig that it was learned from. Lives as long as the twin.
//
// # Safety
// `twin` is NULL or a live handle.
const char *understudy_twin_rig(const UnderstudyTwin *twin);

// Its kind: "body", "diff", "face" or "skin". Lives as long as the twin.
//
// # Safety
// `twin` is NULL or a live handle.
const char *understudy_twin_kind(const UnderstudyTwin *twin);

// The name of a bone; NULL where there is no such bone. Lives as long as the twin.
//
// # Safety
// `twin` is NULL or a live handle.
const char *understudy_twin_bone_name(const UnderstudyTwin *twin, size_t bone);

// The parent of a bone, -1 for a root; -2 where there is no such bone.
//
// # Safety
// `twin` is NULL or a live handle.
int64_t understudy_twin_bone_parent(const UnderstudyTwin *twin, size_t bone);

// The name of a control; NULL where there is no such control. Lives as long as the twin.
//
// # Safety
// `twin` is NULL or a live handle.
const char *understudy_twin_control_name(const UnderstudyTwin *twin, int32_t which, size_t control);

// The lower end, the upper end and the default of every control: three numbers each.
//
// # Safety
// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
UnderstudyStatus understudy_twin_control_ranges(const UnderstudyTwin *twin,
                                                int32_t which,
                                                float *out,
                                                size_t length);

// The corners of every face, four numbers each; the last of a triangle is `UINT32_MAX`.
//
// # Safety
// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
UnderstudyStatus understudy_twin_faces(const UnderstudyTwin *twin, uint32_t *out, size_t length);

// World transforms of the bones at rest: 4×4 matrices by columns, cm.
//
// # Safety
// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
UnderstudyStatus understudy_twin_rest_bones(const UnderstudyTwin *twin, float *out, size_t length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* UNDERSTUDY_H */
