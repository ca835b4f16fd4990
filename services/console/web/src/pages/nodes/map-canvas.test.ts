import { describe, expect, it } from "@jest/globals";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { testRow } from "../../state/nodes/testing/test-rows.ts";

// Import without types, because tests are checked without the types of a browser.
const { paintCells, STEP_PX } = await import(new URL("./map-canvas.ts", import.meta.url).href);

/** A canvas that records what is drawn on it. */
class FakeCanvas {
  width = 0;
  height = 0;
  readonly drawn: string[] = [];
  readonly #drawing = {
    fillStyle: "",
    scale: (by: number) => this.drawn.push(`scale ${by}`),
    fillRect: (x: number, y: number) => this.drawn.push(`${this.#drawing.fillStyle} ${x / STEP_PX},${y / STEP_PX}`),
    clearRect: (x: number, y: number) => this.drawn.push(`clear ${x / STEP_PX},${y / STEP_PX}`),
  };
  readonly getContext = () => this.#drawing;
}

const colors = { healthy: "green", unhealthy: "red", unknown: "orange", held: "grey", "not approved": "blue" };
const frame = { widthPx: 2 * STEP_PX, heightPx: 2 * STEP_PX, scale: 1, colors };
const unhealthy = (id: string): NodeRow => testRow(id, {}, { health: { state: HealthState.UNHEALTHY } });

function paint(canvas: FakeCanvas, rows: readonly NodeRow[], before: unknown, at: object = frame) {
  canvas.drawn.length = 0;
  return paintCells(canvas, rows, at, before);
}

describe("paintCells()", () => {
  it("should draw only the cells that changed", () => {
    const canvas = new FakeCanvas();
    const first = paint(canvas, [testRow("a"), testRow("b"), unhealthy("c")], null);
    expect(canvas.drawn).toEqual(["scale 1", "green 0,0", "green 1,0", "red 0,1"]);
    const second = paint(canvas, [testRow("a"), unhealthy("b"), unhealthy("c")], first);
    expect(canvas.drawn).toEqual(["red 1,0"]);
    const third = paint(canvas, [testRow("a"), unhealthy("b")], second);
    expect(canvas.drawn).toEqual(["clear 0,1"]);
    paint(canvas, [testRow("a"), unhealthy("b"), testRow("d")], third);
    expect(canvas.drawn).toEqual(["green 0,1"]);
  });

  it("should draw everything again in another frame or with other colors", () => {
    const canvas = new FakeCanvas();
    const rows = [testRow("a"), testRow("b")];
    const first = paint(canvas, rows, null);
    const wide = paint(canvas, rows, first, { ...frame, widthPx: 3 * STEP_PX, scale: 2 });
    expect([canvas.width, canvas.height]).toEqual([6 * STEP_PX, 4 * STEP_PX]);
    expect(canvas.drawn).toEqual(["scale 2", "green 0,0", "green 1,0"]);
    paint(canvas, rows, wide, { ...frame, colors: { ...colors, healthy: "lime" } });
    expect(canvas.drawn).toEqual(["scale 1", "lime 0,0", "lime 1,0"]);
  });
});
