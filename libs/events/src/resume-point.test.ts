import { describe, expect, it } from "@jest/globals";
import { decideResumePoint, type ResumeFacts } from "./resume-point.ts";

const stream = {
  created: "2026-01-01T00:00:00Z",
  lastSequence: 100,
  isExclusive: true,
  keepsMessages: true,
  maxMessageBytes: Number.POSITIVE_INFINITY,
};
const lastEvent = { revision: 1_000n, logId: "log", sequence: 100 };
const memory = { created: stream.created, lastSequence: 100 };
const facts: ResumeFacts = { cursor: 1_000n, logId: "log", stream, memory: null, lastEvent };

describe("decideResumePoint()", () => {
  const lost = { ...stream, lastSequence: 60 };
  const lastLeft = { ...lastEvent, revision: 600n, sequence: 60 };
  const cases: readonly (readonly [string, bigint, Partial<ResumeFacts>])[] = [
    ["at the cursor, when the stream ends there", 1_000n, {}],
    ["at the cursor, when the stream is ahead of it", 900n, { cursor: 900n }],
    ["at the beginning, when nothing was published yet", 0n, { cursor: 0n }],
    [
      "at the beginning of the log, when the stream is new",
      0n,
      { stream: { ...stream, lastSequence: 0 }, lastEvent: null },
    ],
    [
      "at the newest event that is left, when a start finds the stream behind",
      600n,
      { stream: lost, lastEvent: lastLeft },
    ],
    [
      "at the newest event that is left, when the stream fell behind",
      600n,
      { stream: lost, lastEvent: lastLeft, memory },
    ],
    [
      "at the cursor, though it lies before the newest event that is left",
      500n,
      { stream: lost, lastEvent: lastLeft, memory, cursor: 500n },
    ],
    [
      "at the beginning of the log, when nothing that is left tells how far the stream fell behind",
      0n,
      { stream: lost, lastEvent: null, memory },
    ],
    ["at the cursor, when the stream took all that was acknowledged", 1_000n, { memory, lastEvent: lastLeft }],
    ["at the cursor, when the newest messages were deleted", 1_000n, { lastEvent: lastLeft }],
    ["at the cursor, when all messages are gone: read, purged or aged", 1_000n, { lastEvent: null }],
    [
      "at the cursor, when messages go once they are read",
      1_000n,
      { stream: { ...lost, keepsMessages: false }, lastEvent: lastLeft },
    ],
    [
      "at the cursor, when the newest event is of another log",
      1_000n,
      { stream: lost, lastEvent: { ...lastLeft, logId: "other" } },
    ],
    [
      "at the newest event of ours in a stream that others write to",
      600n,
      { stream: { ...stream, isExclusive: false }, lastEvent: lastLeft },
    ],
    [
      "at the cursor, when another writer filled a stream that was ours alone",
      1_000n,
      { stream: { ...stream, created: "later" }, memory },
    ],
    [
      "at the beginning of the log, when a stream of many took events after its loss",
      0n,
      { stream: { ...stream, created: "later", isExclusive: false }, memory },
    ],
    [
      "at the beginning of the log, when another stream has taken the name",
      0n,
      { stream: { ...stream, created: "later" }, memory, lastEvent: null },
    ],
    [
      "at the newest event, when another stream has taken the name and got events",
      600n,
      { stream: { ...lost, created: "later" }, memory, lastEvent: lastLeft },
    ],
  ];

  it.each(cases)("should continue %s", (_, after, changes) => {
    expect(decideResumePoint({ ...facts, ...changes })).toBe(after);
  });
});
