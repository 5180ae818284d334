// A character that plays motion on command, and a body that reaches with a hand:
//
//     cc live.c -I../include -L../../../target/release -lunderstudy -lm -o live
//     ./live sway.motion "transition nod; idle 2s" body.twin '{"hand_L": ["arm", "elbow", "wrist"]}'
//
// Every frame of the motion gives the controls of a rig or its twin. Then the body's first handle goes to where a quarter of a
// circle around its start leads it, and the vertices follow. What the last argument spells may be left out where bones
// have usual names.

#include "understudy.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, understudy_last_error());
    return 2;
}

// FNV-1a over the bytes of some numbers, as play.c has it.
static uint64_t checksum(uint64_t hash, const float *numbers, size_t count) {
    const unsigned char *bytes = (const unsigned char *)numbers;
    for (size_t i = 0; i < count * sizeof(float); i++) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
    return hash;
}

static int play(const char *path, const char *script) {
    UnderstudyMotion *motion = understudy_motion_load(path);
    if (!motion) return fail("motion");
    const size_t controls = understudy_motion_control_count(motion);
    UnderstudyCharacter *character = understudy_character_new(motion, NULL, 1);
    float *frame = calloc(controls + 1, sizeof(float));
    if (!character || !frame) return fail("character");
    if (understudy_character_script(character, script)) return fail("script");
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (int k = 0; k < 96; k++) {
        if (understudy_character_step(character, 1)) return fail("step");
        if (understudy_character_controls(character, frame, controls)) return fail("controls");
        hash = checksum(hash, frame, controls);
    }
    printf("%s: 96 frames of %zu controls at %g per second, checksum %016llx\n", understudy_motion_rig(motion),
           controls, understudy_motion_rate(motion), (unsigned long long)hash);
    printf("%s\n", understudy_character_situation(character));
    free(frame);
    understudy_character_free(character);
    understudy_motion_free(motion);
    return 0;
}

static int reach(const char *path, const char *spelling) {
    UnderstudyTwin *twin = understudy_twin_load(path);
    if (!twin) return fail("twin");
    UnderstudyLimbs *limbs = understudy_limbs_new(twin, spelling);
    if (!limbs) return fail("limbs");
    UnderstudyPlayer *player = understudy_player_new(twin, 1);
    const size_t bones = 16 * understudy_twin_bone_count(twin), vertices = 3 * understudy_twin_vertex_count(twin);
    const size_t extras = understudy_twin_control_count(twin, UNDERSTUDY_CONTROLS_EXTRA);
    const int64_t hand = understudy_limbs_bone(limbs, 0);
    float *rest = calloc(bones, sizeof(float)), *moved = calloc(bones, sizeof(float));
    float *out = calloc(vertices, sizeof(float)), *controls = calloc(extras + 1, sizeof(float));
    if (!player || !rest || !moved || !out || !controls) return fail("memory");
    if (understudy_twin_rest_bones(twin, rest, bones)) return fail("rest");
    // The bone at the limb's other end: two above the hand, as the bones of limbs hang on each other here.
    const int64_t root = understudy_twin_bone_parent(twin, (size_t)understudy_twin_bone_parent(twin, (size_t)hand));
    const float *origin = rest + 16 * root + 12, *start = rest + 16 * hand + 12;
    float most = 0;
    for (int k = 0; k <= 30; k++) {
        const float angle = 1.5707963f * (float)k / 30.0f, x = start[0] - origin[0], y = start[1] - origin[1];
        const float target[3] = {origin[0] + 0.9f * (cosf(angle) * x - sinf(angle) * y),
                                 origin[1] + 0.9f * (sinf(angle) * x + cosf(angle) * y),
                                 origin[2] + 0.9f * (start[2] - origin[2])};
        int32_t how = 0;
        memcpy(moved, rest, bones * sizeof(float));
        if (understudy_limbs_reach(limbs, 0, target, 3, NULL, 0, 0.0f, 0, moved, bones, &how)) return fail("reach");
        if (understudy_pose_bones(player, moved, bones, controls, extras, 1, out, vertices)) return fail("pose");
        const float *end = moved + 16 * hand + 12;
        const float off = sqrtf(powf(end[0] - target[0], 2) + powf(end[1] - target[1], 2) + powf(end[2] - target[2], 2));
        if (how == UNDERSTUDY_REACH_EXACT && off > most) most = off;
    }
    printf("%s: %s over a quarter of a circle, at most %.4f mm off where it can reach\n", understudy_twin_rig(twin),
           understudy_limbs_name(limbs, 0), 10.0f * most);
    free(rest), free(moved), free(out), free(controls);
    understudy_player_free(player);
    understudy_limbs_free(limbs);
    understudy_twin_free(twin);
    return most < 1e-3f ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: live MOTION SCRIPT BODY.twin [SPELLING]\n");
        return 2;
    }
    const int played = play(argv[1], argv[2]);
    return played ? played : reach(argv[3], argc == 5 ? argv[4] : NULL);
}
