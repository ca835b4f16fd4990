import { describe, expect, it } from "@jest/globals";
import { plainActorNames } from "./actor-names.ts";

describe("plainActorNames()", () => {
  it.each([
    ["user:ana@example.com", "ana@example.com"],
    ["token:cb60280f-c44c-4199-93dc-5be629bdc16e", "token cb60280f"],
    ["join-token:3481b6331a83", "join token 3481b6331a83"],
    ["node:web-1", "node web-1"],
    ["system", "the control plane"],
    ["replica:health-1.5f", "the control plane"],
    ["service-account:rollcall/health", "service-account:rollcall/health"],
    ["", "-"],
  ])("should name %j %j", (actor, name) => {
    expect(plainActorNames(actor)).toBe(name);
  });
});
