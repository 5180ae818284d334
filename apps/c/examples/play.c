// Plays a take (a table of controls, as `understudy` writes them) on a twin and prints a checksum of all vertices:
//
//     cc play.c -I../include -L../../../target/release -lunderstudy -lm -o play && ./play hero.twin take.csv
//
// The first row of the table names controls; what the twin does not know is left out, what the table lacks rests.

#include "understudy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, understudy_last_error());
    return 2;
}

// FNV-1a over the bytes of the vertices, little endian: the same on every machine that we know of.
static uint64_t checksum(uint64_t hash, const float *numbers, size_t count) {
    const unsigned char *bytes = (const unsigned char *)numbers;
    for (size_t i = 0; i < count * sizeof(float); i++) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
    return hash;
}

// The next cell of a row, which may be empty; NULL after the last.
static char *cell(char **rest) {
    char *start = *rest;
    if (!start) return NULL;
    char *end = start + strcspn(start, ",\r\n");
    *rest = *end == ',' ? end + 1 : NULL;
    *end = 0;
    return start;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: play TWIN TAKE.csv\n");
        return 2;
    }
    UnderstudyTwin *twin = understudy_twin_load(argv[1]);
    if (!twin) return fail(argv[1]);
    UnderstudyPlayer *player = understudy_player_new(twin, 1);
    const size_t vertices = 3 * understudy_twin_vertex_count(twin);
    const size_t controls = understudy_twin_control_count(twin, UNDERSTUDY_CONTROLS_POSING);
    float *out = calloc(vertices, sizeof(float)), *ranges = calloc(3 * controls + 1, sizeof(float));
    float *pose = calloc(controls + 1, sizeof(float));
    if (!player || !out || !ranges || !pose) return fail("memory");
    if (understudy_twin_control_ranges(twin, UNDERSTUDY_CONTROLS_POSING, ranges, 3 * controls)) return fail("ranges");
    for (size_t c = 0; c < controls; c++) pose[c] = ranges[3 * c + 2];

    FILE *file = fopen(argv[2], "r");
    if (!file) {
        perror(argv[2]);
        return 2;
    }
    static char line[1 << 20];
    size_t columns[4096], count = 0, frames = 0;
    if (!fgets(line, sizeof line, file)) {
        fprintf(stderr, "%s: no names of controls\n", argv[2]);
        return 2;
    }
    char *rest = line;
    for (char *name; count < 4096 && (name = cell(&rest)); count++) {
        columns[count] = controls;
        for (size_t c = 0; c < controls; c++)
            if (!strcmp(name, understudy_twin_control_name(twin, UNDERSTUDY_CONTROLS_POSING, c))) columns[count] = c;
    }
    uint64_t hash = 0xcbf29ce484222325ULL;
    while (fgets(line, sizeof line, file)) {
        if (!line[strspn(line, "\r\n")]) continue;
        rest = line;
        char *word;
        // An empty cell leaves the control where it was.
        for (size_t column = 0; column < count && (word = cell(&rest)); column++)
            if (columns[column] < controls && *word) pose[columns[column]] = strtof(word, NULL);
        if (understudy_pose_controls(player, pose, controls, 1, out, vertices)) return fail(argv[2]);
        hash = checksum(hash, out, vertices);
        frames++;
    }
    printf("%s, %zu vertices, %zu frames, checksum %016llx\n", understudy_twin_rig(twin), vertices / 3, frames,
           (unsigned long long)hash);
    fclose(file);
    free(out), free(ranges), free(pose);
    understudy_player_free(player);
    understudy_twin_free(twin);
    return 0;
}
