import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GetControlPlaneStatusResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { formatWork } from "./status.ts";

describe("formatWork()", () => {
  it.each([
    [{ configured: false }, "not configured"],
    [
      { configured: true, revision: 1n, lag: 5n },
      "5 revisions behind, at 1, no process is relaying: NATS cannot be reached",
    ],
    [{ configured: true, instance: "up-1", revision: 117n, lag: 3n }, "3 revisions behind, at 117, by up-1"],
  ])("should show how far the log is relayed to NATS (%#)", (relay, text) => {
    const status = create(GetControlPlaneStatusResponseSchema, {
      log: { headRevision: 120n, compactedRevision: 20n },
      relay,
    });
    expect(formatWork(status, 0)).toBe(
      `Log:           at revision 120, events kept from revision 21\nRelay to NATS: ${text}\n`,
    );
  });
});
