// Compiles the component against the header with a C++ compiler and plays a body's rest pose: what CI can say of the note for
// Unreal.

#define UNDERSTUDY_STUB
#include "TwinComponent.h"
#include <cmath>
#include <cstdio>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    UnderstudyTwin *twin = understudy_twin_load(argv[1]);
    if (!twin) {
        std::fprintf(stderr, "%s\n", understudy_last_error());
        return 2;
    }
    std::vector<float> rest(16 * understudy_twin_bone_count(twin));
    understudy_twin_rest_bones(twin, rest.data(), rest.size());
    // As the engine would hold them: there and back is the identity.
    std::vector<FMatrix> bones(rest.size() / 16);
    const int swap[3] = {0, 2, 1};
    for (size_t bone = 0; bone < bones.size(); bone++) {
        for (int axis = 0; axis < 4; axis++)
            for (int row = 0; row < 3; row++)
                bones[bone].M[axis < 3 ? swap[axis] : 3][swap[row]] = rest[16 * bone + 4 * axis + row];
        float back[16];
        ToUnderstudy(bones[bone], back);
        for (int i = 0; i < 16; i++)
            if (std::fabs(back[i] - rest[16 * bone + i]) > 1e-6f) return 3;
    }
    FTwinOnActor actor(argv[1]);
    std::vector<FVector> vertices;
    if (!actor.Pose(bones, vertices)) {
        std::fprintf(stderr, "%s\n", understudy_last_error());
        return 4;
    }
    std::printf("%zu vertices\n", vertices.size());
    understudy_twin_free(twin);
    return 0;
}
