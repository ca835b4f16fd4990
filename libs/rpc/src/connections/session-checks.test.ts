import type http2 from "node:http2";
import { describe, expect, it } from "@jest/globals";
import type { Connection } from "./connection.ts";
import { SessionChecks } from "./session-checks.ts";

const ANSWER_MS = 20_000;
const KNOWN_EVERY_MS = 120_000;

/** A connection whose peer answers pings as the test says. Time passes in ticks of a second. */
function pinged(standing: Connection["standing"]) {
  let nowMs = 1_000;
  let answer: ((error: null) => void) | null = null;
  const pingedAtMs: number[] = [];
  const cuts: string[] = [];
  const session = {
    state: { outboundQueueSize: 0 },
    ping: (onAnswer: (error: null) => void) => {
      pingedAtMs.push(nowMs);
      answer = onAnswer;
      return true;
    },
  } as unknown as http2.ServerHttp2Session;
  const connection = {
    ...{ session, standing, calls: 1, askedAtMs: 0, provedAtMs: 0, endingAtMs: 0, isTrusted: false, budget: null },
    socket: { destroyed: false, bytesRead: 0 },
  } as unknown as Connection;
  const checks = new SessionChecks({
    ...{ answerMs: ANSWER_MS, knownEveryMs: KNOWN_EVERY_MS, nowMs: () => nowMs, sentMuch: () => {} },
    cut: (_, reason) => cuts.push(reason),
  });
  checks.add(connection);
  checks.close();
  const pass = (ms: number) => {
    for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
      nowMs += 1_000;
      checks.tick();
    }
  };
  const respond = () => {
    answer?.(null);
    answer = null;
  };
  return { pass, respond, pingedAtMs, cuts, isAsked: () => answer !== null };
}

describe("SessionChecks", () => {
  it.each([
    ["anonymous", "busy", 30_000],
    ["known", "known", KNOWN_EVERY_MS],
  ] as const)(
    "should ping a connection (%s) once per interval, and keep it while it answers late",
    (_, standing, everyMs) => {
      const { pass, respond, pingedAtMs, cuts, isAsked } = pinged(standing);
      for (let interval = 0; interval < 100; interval += 1) {
        while (!isAsked()) pass(1_000);
        pass(ANSWER_MS - 1_000);
        respond();
        expect(cuts).toEqual([]);
      }
      const gapsMs = pingedAtMs.slice(1).map((atMs, index) => atMs - (pingedAtMs[index] ?? 0));
      expect(new Set(gapsMs)).toEqual(new Set([everyMs + ANSWER_MS - 1_000]));
      // A peer that has answered a hundred times has no more time than a new one.
      pass(everyMs + ANSWER_MS - 1_000);
      expect(cuts).toEqual([]);
      pass(1_000);
      expect(cuts).toEqual(["unresponsive"]);
    },
  );
});
