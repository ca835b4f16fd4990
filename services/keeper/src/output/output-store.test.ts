import { appendFile, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { OutputStore } from "./output-store.ts";
import { MOST_MARKS } from "./output-times.ts";

describe("OutputStore", () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "rollcall-output-store-"));
  });

  afterEach(() => rm(directory, { recursive: true }));

  const open = (maxFileBytes = 1_000, maxFiles = 2) =>
    OutputStore.open({ directory, name: "stdout", rules: { maxFileBytes, maxFiles } });

  const text = (data: Uint8Array) => Buffer.from(data).toString();

  it("should not count output that could not be written", async () => {
    const store = await open();
    await rm(directory, { recursive: true });
    await expect(store.append(Buffer.from("lost\n"), 1_000)).rejects.toMatchObject({ code: "ENOENT" });
    await mkdir(directory);
    await store.append(Buffer.from("kept\n"), 2_000);
    for (const each of [store, await open()]) {
      expect([each.begin, each.end]).toEqual([0, 5]);
      expect(text((await each.read(0, 100)).data)).toBe("kept\n");
    }
  });

  it("should report when bytes were written, also in the next keeper", async () => {
    const first = await open();
    await first.append(Buffer.from("one\n"), 1_000);
    await first.append(Buffer.from("two\n"), 1_900);
    await first.append(Buffer.from("three\n"), 9_000);
    const second = await open();
    await second.append(Buffer.from("four\n"), 9_500);
    const piece = await second.readTimed(0, 100);
    expect(text(piece.data)).toBe("one\ntwo\nthree\nfour\n");
    expect(piece.times.map(({ offset, atMs }) => [offset, atMs])).toEqual([
      [0, 1_000],
      [8, 9_000],
    ]);
    expect(await second.since(5_000)).toEqual({ offset: 8, isCut: false });
    expect(await second.since(20_000)).toEqual({ offset: second.end, isCut: false });
  });

  it.each([
    ["is gone", [[4, 50_000]], () => rm(join(directory, "times-stdout"))],
    [
      "is damaged",
      [
        [0, 1_000],
        [4, 50_000],
      ],
      () => appendFile(join(directory, "times-stdout"), Buffer.alloc(30, 0xff)),
    ],
  ])("should not invent times if their file %s", async (_, known, damage) => {
    await (await open()).append(Buffer.from("old\n"), 1_000);
    await damage();
    const store = await open();
    await store.append(Buffer.from("new\n"), 50_000);
    const { times } = await store.readTimed(0, 100);
    expect(times.map(({ offset, atMs }) => [offset, atMs])).toEqual(known);
    expect(await store.since(60_000)).toEqual({ offset: 8, isCut: false });
  });

  it("should keep a limited number of times", async () => {
    const store = await open(1_000_000, 1);
    const written = MOST_MARKS + 100;
    for (let at = 0; at < written; at += 1) await store.append(Buffer.from("x"), at * 1_000);
    expect((await stat(join(directory, "times-stdout"))).size).toBeLessThanOrEqual(MOST_MARKS * 24);
    const { times } = await store.readTimed(written - 200, 200);
    expect(times.map(({ offset, atMs }) => atMs - offset * 1_000)).toEqual(times.map(() => 0));
    expect(times).toHaveLength(200);
  });

  it("should limit the times of a piece to fit into a frame", async () => {
    const store = await open();
    for (let at = 0; at < 300; at += 1) await store.append(Buffer.from("x"), at * 1_000);
    const piece = await store.readTimed(0, 1_000);
    expect([piece.data.length, piece.times.length]).toEqual([256, 256]);
  });

  it("should skip output that is removed during a read", async () => {
    const store = await open(4, 2);
    await store.append(Buffer.from("aaaabbbb"), 0);
    // Simulate a removal that the store has not recorded yet.
    for (const name of (await readdir(directory)).filter((one) => one.endsWith("00"))) await rm(join(directory, name));
    const piece = await store.read(0, 100);
    expect([piece.offset, text(piece.data)]).toEqual([4, "bbbb"]);
  });

  it("should be readable to its end while old output is being removed", async () => {
    const store = await open(100, 2);
    let isWritten = false;
    const writing = (async () => {
      for (let at = 0; at < 300; at += 1) await store.append(Buffer.alloc(70, "x"), at);
      isWritten = true;
    })();
    let offset = 0;
    while (!isWritten || offset < store.end) {
      const piece = await store.read(offset, 1_000);
      expect(piece.offset).toBeGreaterThanOrEqual(offset);
      offset = piece.offset + piece.data.length;
      if (piece.data.length === 0) await setImmediate();
    }
    await writing;
    expect(offset).toBe(21_000);
  });
});
