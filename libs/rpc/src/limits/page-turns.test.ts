import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { limitPages } from "../interceptors/limit-pages.ts";

const LIMIT = 4;
const WAIT_MS = 3_000;

type Next = Parameters<ReturnType<typeof limitPages>>[0];
type Request = Parameters<Next>[0];

describe("limitPages()", () => {
  it("should create a limited number of pages at a time, whichever way each ends", async () => {
    const clock = new ManualClock();
    const limit = limitPages({ clock, atATime: LIMIT, waitMs: WAIT_MS });
    let creating = 0;
    const begin = async (): Promise<Use> => {
      let finish: (error: Error | null) => void = () => {};
      const page = new Promise<void>((resolve, reject) => {
        finish = (error) => (error === null ? resolve() : reject(error));
      });
      const next = async () => {
        creating += 1;
        await page.finally(() => {
          creating -= 1;
        });
        return {};
      };
      const request = {
        method: RegistryService.method.listNodes,
        signal: new AbortController().signal,
        contextValues: createContextValues(),
      };
      const before = creating;
      const call = limit(next as unknown as Next)(request as unknown as Request);
      const ended = call.then(
        () => null,
        (error: unknown) => error,
      );
      await settle();
      if (creating === before) {
        // The call waits for its turn, and is refused once it has waited too long.
        await clock.pass(WAIT_MS);
        throw await ended;
      }
      const end = async (error: Error | null) => {
        finish(error);
        await ended;
      };
      return { endings: { "its page": () => end(null), "an error": () => end(new Error("no page")) } };
    };
    const held = () => creating + clock.sleepers;
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin, held })).toEqual([]);
  });
});
