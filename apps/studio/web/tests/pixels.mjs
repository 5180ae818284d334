// Pictures as numbers: what a canvas or a screenshot shows, read back inside the browser, which knows PNG.

/** Mean colour, spread and a coarse grid of a picture (PNG bytes): enough to tell blank from not, and one layout from another. */
export async function look(page, png) {
  return page.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const [width, height] = [160, 90];
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    const { data: pixels } = context.getImageData(0, 0, width, height);
    const grid = Array.from({ length: 16 * 9 }, () => [0, 0, 0]);
    const mean = [0, 0, 0];
    let squares = 0;
    for (let at = 0, pixel = 0; at < pixels.length; at += 4, pixel++) {
      const cell = grid[Math.floor(Math.floor(pixel / width) / 10) * 16 + Math.floor((pixel % width) / 10)];
      for (let axis = 0; axis < 3; axis++) {
        cell[axis] += pixels[at + axis] / 100;
        mean[axis] += pixels[at + axis] / (width * height);
      }
      squares += (pixels[at] + pixels[at + 1] + pixels[at + 2]) ** 2 / 9 / (width * height);
    }
    const grey = (mean[0] + mean[1] + mean[2]) / 3;
    return { mean, spread: Math.sqrt(Math.max(squares - grey * grey, 0)), grid };
  }, png.toString("base64"));
}

/** Cells of the columns from the first to before the last. */
const columns = ({ grid }, [from, to]) => grid.filter((_, place) => place % 16 >= from && place % 16 < to);

/** Mean difference of two pictures' grids, 0 to 255; of some of their 16 columns where that is asked for. */
export function difference(a, b, range = [0, 16]) {
  const [one, other] = [columns(a, range), columns(b, range)];
  let sum = 0;
  one.forEach((cell, place) => cell.forEach((value, axis) => { sum += Math.abs(value - other[place][axis]); }));
  return sum / (one.length * 3);
}

/** How much more red than blue there is, mean of some columns. */
export function warmth(picture, range = [0, 16]) {
  const cells = columns(picture, range);
  return cells.reduce((sum, [red, , blue]) => sum + red - blue, 0) / cells.length;
}
