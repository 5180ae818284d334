// A twin on an actor, as an Unreal component would hold it: the conversion of spaces, and the calls. In Unreal, `UNDERSTUDY_STUB`
// is not defined and the engine's own types are used; CI compiles this with the stub, whose types have the same members.

#pragma once

#include "understudy.h"
#include <vector>

#ifdef UNDERSTUDY_STUB
struct FVector {
    double X = 0, Y = 0, Z = 0;
};
// By rows, translation in the last: the engine's layout.
struct FMatrix {
    double M[4][4];
};
#else
#include "CoreMinimal.h"
#endif

// Unreal: centimetres, Z up, left-handed. Understudy: centimetres, Y up, right-handed. Swapping Y and Z does both.
inline FVector ToUnreal(const float *Place) { return {Place[0], Place[2], Place[1]}; }

// A bone's component-space matrix (rows are axes) as 16 numbers by columns in our space.
inline void ToUnderstudy(const FMatrix &Bone, float *Out) {
    const int Swap[3] = {0, 2, 1};
    for (int Axis = 0; Axis < 3; Axis++)
        for (int Row = 0; Row < 3; Row++) Out[4 * Axis + Row] = static_cast<float>(Bone.M[Swap[Axis]][Swap[Row]]);
    for (int Row = 0; Row < 3; Row++) Out[12 + Row] = static_cast<float>(Bone.M[3][Swap[Row]]);
    Out[3] = Out[7] = Out[11] = 0.0f;
    Out[15] = 1.0f;
}

class FTwinOnActor {
public:
    explicit FTwinOnActor(const char *Path) : Twin(understudy_twin_load(Path)), Player(understudy_player_new(Twin, 1)) {
        Numbers.resize(3 * understudy_twin_vertex_count(Twin));
        Matrices.resize(16 * understudy_twin_bone_count(Twin));
        Extras.resize(understudy_twin_control_count(Twin, UNDERSTUDY_CONTROLS_EXTRA));
    }
    ~FTwinOnActor() {
        understudy_player_free(Player);
        understudy_twin_free(Twin);
    }
    FTwinOnActor(const FTwinOnActor &) = delete;
    FTwinOnActor &operator=(const FTwinOnActor &) = delete;

    // Bones in the order of understudy_twin_bone_name. False: understudy_last_error() says why.
    bool Pose(const std::vector<FMatrix> &Bones, std::vector<FVector> &Vertices) {
        if (Bones.size() * 16 != Matrices.size()) return false;
        for (size_t Bone = 0; Bone < Bones.size(); Bone++) ToUnderstudy(Bones[Bone], &Matrices[16 * Bone]);
        if (understudy_pose_bones(Player, Matrices.data(), Matrices.size(), Extras.data(), Extras.size(), 1,
                                  Numbers.data(), Numbers.size()) != UNDERSTUDY_STATUS_OK)
            return false;
        Vertices.resize(Numbers.size() / 3);
        for (size_t Vertex = 0; Vertex < Vertices.size(); Vertex++) Vertices[Vertex] = ToUnreal(&Numbers[3 * Vertex]);
        return true;
    }

private:
    UnderstudyTwin *Twin;
    UnderstudyPlayer *Player;
    std::vector<float> Numbers, Matrices, Extras;
};
