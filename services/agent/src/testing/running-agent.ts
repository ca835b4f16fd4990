import type { Beat } from "@rollcall/api/rollcall/health/v1/health_pb";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { settle } from "@rollcall/testkit/time";
import { toNodeInfo } from "../convert.ts";
import { type AgentHarness, createHarness, type HarnessOptions, SMALL_FACTS } from "./agent-harness.ts";
import { FakeControlPlane } from "./fake-control-plane.ts";

/** Start an agent, and let it do everything that it can do without waiting. */
export async function startAgent(options: HarnessOptions = {}): Promise<AgentHarness> {
  const harness = createHarness(options);
  harness.start();
  await settle();
  return harness;
}

/** Start an agent that has registered before, after `prepare` has set up the control plane. */
export async function startKnown(
  prepare: (plane: FakeControlPlane) => void = () => {},
  options: HarnessOptions = {},
): Promise<AgentHarness> {
  const plane = new FakeControlPlane();
  const keyPair = generateKeyPair();
  const info = toNodeInfo(SMALL_FACTS, { agentVersion: "0.1.0", advertiseUrl: "", labels: {} });
  await plane.register({ nodeId: "node-1", keyPair, info, joinToken: "" }, new AbortController().signal);
  plane.registrations.length = 0;
  prepare(plane);
  const sentinel = {
    nodeId: "node-1",
    keyFingerprint: keyFingerprint(keyPair.publicKey),
    clusterId: plane.clusterId,
    healthEndpoints: plane.endpoints,
  };
  return startAgent({ plane, keyPair, sentinel, ...options });
}

/** The beats on the newest stream. */
export function beatsOf({ plane }: AgentHarness): readonly Beat[] {
  return plane.latest.received.flatMap((frame) => (frame?.case === "beat" ? [frame.value] : []));
}

/** The kinds of frames on the newest stream. */
export function kindsOf({ plane }: AgentHarness): readonly (string | undefined)[] {
  return plane.latest.received.map((frame) => frame?.case);
}
