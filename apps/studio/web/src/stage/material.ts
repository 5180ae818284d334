// The look of a character: the colours of its regions, how polished each is, how open each vertex is to the light; or, in
// heat mode, its distance from the original in the colours of the legend.

import * as THREE from "three";

/** Regions by the names of segments, and how polished they are: 0 is chalk, 1 is glass. */
const SHINE: readonly (readonly [RegExp, number])[] = [
  [/lash|brow/i, 0.15],
  [/^eye(?!lid)|eyeball|cornea|sclera/i, 0.92],
  [/tooth|teeth/i, 0.75],
  [/tongue|gum|mouth/i, 0.62],
  [/buckle|spike|metal|rivet|button|clasp/i, 0.8],
  [/boot|shoe|belt|strap|leather/i, 0.5],
  [/hair|bun|strand/i, 0.42],
];
const SKIN = 0.3;

/** Muted colours for rigs that come without. */
const CLAY: readonly (readonly [number, number, number])[] = [
  [196, 178, 165], [150, 164, 186], [172, 184, 160], [190, 160, 150], [168, 158, 182], [184, 176, 146],
];

export function shineOf(segment: string): number {
  return SHINE.find(([pattern]) => pattern.test(segment))?.[1] ?? SKIN;
}

/** Eyes and teeth lie deep, but light finds them: how open they are at least, 0 to 255. */
export function leastOpen(segment: string): number {
  return /^eye(?!lid)|eyeball|sclera|cornea/i.test(segment) ? 205 : /tooth|teeth/i.test(segment) ? 150 : 0;
}

export function clayOf(segment: number): readonly [number, number, number] {
  return CLAY[segment % CLAY.length]!;
}

/** What can change from frame to frame. */
export interface Look {
  readonly heat: THREE.IUniform<number>;
  /** Largest distance of the scale, mm. */
  readonly scale: THREE.IUniform<number>;
  readonly ramp: THREE.IUniform<THREE.Texture>;
}

/** The colours of errors, from the server. */
export function rampTexture(colours: readonly (readonly [number, number, number])[]): THREE.DataTexture {
  const data = new Uint8Array(colours.flatMap(([r, g, b]) => [r, g, b, 255]));
  const texture = new THREE.DataTexture(data, Math.max(colours.length, 1), 1);
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.magFilter = texture.minFilter = THREE.LinearFilter;
  texture.needsUpdate = true;
  return texture;
}

/** Needs the attributes `color`, `openness`, `shine` and `error`. */
export function characterMaterial(look: Look): THREE.MeshStandardMaterial {
  const material = new THREE.MeshStandardMaterial({ vertexColors: true, roughness: 1, metalness: 0, side: THREE.DoubleSide });
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, { heat: look.heat, heatScale: look.scale, heatRamp: look.ramp });
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nattribute float openness;\nattribute float shine;\nattribute float error;\nvarying float vOpenness;\nvarying float vShine;\nvarying float vError;")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\nvOpenness = openness;\nvShine = shine;\nvError = error;");
    shader.fragmentShader = shader.fragmentShader
      .replace("#include <common>", "#include <common>\nuniform float heat;\nuniform float heatScale;\nuniform sampler2D heatRamp;\nvarying float vOpenness;\nvarying float vShine;\nvarying float vError;")
      .replace(
        "#include <color_fragment>",
        `#include <color_fragment>
        vec3 heatColour = texture2D(heatRamp, vec2(clamp(vError / heatScale, 0.004, 0.996), 0.5)).rgb;
        diffuseColor.rgb = mix(diffuseColor.rgb, heatColour, heat);`,
      )
      .replace("#include <roughnessmap_fragment>", "float roughnessFactor = mix(0.92, 0.12, vShine);\nroughnessFactor = mix(roughnessFactor, 0.9, heat);")
      // Creases are dark to the sky, and a little to the lamps; light that comes out of a dark place is warmer.
      .replace(
        "#include <aomap_fragment>",
        `vec3 open = pow(vec3(clamp(vOpenness, 0.0, 1.0)), vec3(0.85, 1.0, 1.08));
        reflectedLight.indirectDiffuse *= mix(open, vec3(0.4) + 0.6 * open, heat);
        reflectedLight.directDiffuse *= 0.62 + 0.38 * open;
        reflectedLight.directSpecular *= open;`,
      )
      // A legend is read by its colours: they come after tone mapping, and light only hints at the shape.
      .replace(
        "#include <dithering_fragment>",
        `#include <dithering_fragment>
        float lit = clamp(dot(outgoingLight, vec3(1.0)) / max(dot(diffuseColor.rgb, vec3(1.0)), 0.02), 0.0, 1.0);
        gl_FragColor.rgb = mix(gl_FragColor.rgb, linearToOutputTexel(vec4(heatColour, 1.0)).rgb * (0.62 + 0.38 * lit) + 0.05 * lit, heat);`,
      );
  };
  return material;
}
