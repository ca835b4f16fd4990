import { Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { progressOf } from "./pull-progress.ts";

const MIB = 1_048_576;

async function words(lines: readonly unknown[]): Promise<string[]> {
  const text = lines.map((line) => `${JSON.stringify(line)}\r\n`).join("");
  // Split the text into pieces that do not end at line breaks.
  const pieces = text.match(/[\s\S]{1,7}/g) ?? [];
  const found: string[] = [];
  for await (const one of progressOf(Readable.from(pieces.map((piece) => Buffer.from(piece))))) found.push(one);
  return found;
}

describe("progressOf()", () => {
  it("should add up the downloaded layers", async () => {
    const layer = (id: string, current: number) => ({
      ...{ status: "Downloading", id },
      progressDetail: { current: current * MIB, total: 10 * MIB },
    });
    const found = await words([{ status: "Pulling from web" }, layer("a", 1), layer("b", 2), layer("a", 10)]);
    expect(found).toEqual([": 1 of 10 MiB", ": 3 of 20 MiB", ": 12 of 20 MiB"]);
  });

  it("should throw the error that the engine reports", async () => {
    await expect(words([{ error: "manifest unknown" }])).rejects.toThrow("manifest unknown");
  });

  it("should ignore invalid lines", async () => {
    expect(await words(["text", 1, null, { status: "Downloading", id: 1 }])).toEqual([]);
  });
});
