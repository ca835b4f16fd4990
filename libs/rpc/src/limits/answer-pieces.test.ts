import { describe, expect, it } from "@jest/globals";
import { inPieces, piecesOf } from "./answer-pieces.ts";

const PIECE = 65_536;

function numbered(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => index % 251);
}

describe("piecesOf()", () => {
  it.each([
    [0, 1],
    [1, 1],
    [PIECE, 1],
    [PIECE + 1, 2],
    [PIECE * 3, 3],
    [PIECE * 3 + 7, 4],
  ])("should cut %d bytes into %d pieces that together are the original", (size, count) => {
    const bytes = numbered(size);
    const pieces = piecesOf(bytes);
    expect(pieces).toHaveLength(count);
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  });
});

describe("inPieces()", () => {
  it("should pass every byte on in order, whatever the chunks", async () => {
    const chunks = [3, PIECE * 2 + 1, 0, PIECE, PIECE + 5].map(numbered);
    async function* body() {
      yield* chunks;
    }
    const pieces: Uint8Array[] = [];
    for await (const piece of inPieces(body())) pieces.push(piece);
    expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBe(PIECE);
    expect(Buffer.concat(pieces).equals(Buffer.concat(chunks))).toBe(true);
  });

  it("should end its source when its reader stops in the middle of a chunk", async () => {
    let hasEnded = false;
    async function* body() {
      try {
        yield numbered(PIECE * 4);
      } finally {
        hasEnded = true;
      }
    }
    for await (const piece of inPieces(body())) {
      expect(piece.byteLength).toBe(PIECE);
      break;
    }
    expect(hasEnded).toBe(true);
  });
});
