import { describe, expect, it } from "@jest/globals";
import type { ContainerPlan } from "../spec/read-spec.ts";
import { identityOf } from "../testing/keeper-fixture.ts";
import { type ContainerRequest, containerSettings } from "./container-settings.ts";

const PLAN: ContainerPlan = {
  ...{
    kind: "docker",
    image: "web:1",
    job: "web",
    owner: "token:ci",
    argv: [],
    env: {},
    secretEnv: {},
    user: "",
    probe: null,
  },
  ...{
    millicores: 250,
    memoryBytes: 1_000_000,
    pids: 100,
    probeTimeoutMs: 1_000,
    output: { maxFileBytes: 1, maxFiles: 1 },
  },
  rules: { stopSignal: "SIGTERM", graceMs: 0, maxRunMs: null, stopOnAgentAfterMs: null, check: null },
};
const IMAGE = { id: "sha256:1", digest: "web@sha256:2", user: "" };

function settings(more: Partial<ContainerRequest> = {}, identity = {}) {
  const one = identityOf({}, { id: "e1", ports: { http: 8_080 }, ...identity });
  const request: ContainerRequest = {
    keeper: "k",
    engine: "docker",
    limits: ["pids"],
    identity: one,
    plan: PLAN,
    image: IMAGE,
    env: {},
    argv: [],
    ...more,
  };
  return containerSettings(request);
}

describe("containerSettings()", () => {
  it("should publish each port unchanged, and set the limits", () => {
    const { HostConfig, ExposedPorts } = settings();
    expect(ExposedPorts).toEqual({ "8080/tcp": {}, "8080/udp": {} });
    expect(HostConfig?.PortBindings).toEqual({
      "8080/tcp": [{ HostPort: "8080" }],
      "8080/udp": [{ HostPort: "8080" }],
    });
    expect(HostConfig).toMatchObject({
      NanoCpus: 250_000_000,
      Memory: 1_000_000,
      MemorySwap: 1_000_000,
      PidsLimit: 100,
    });
    expect(settings({ limits: [] }).HostConfig).not.toHaveProperty("PidsLimit");
  });

  it("should mount nothing and grant no privilege", () => {
    const { HostConfig } = settings();
    expect(HostConfig).toMatchObject({ Privileged: false, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] });
    expect(Object.keys(HostConfig ?? {})).not.toEqual(expect.arrayContaining(["Binds"]));
    for (const key of ["Binds", "Mounts", "VolumesFrom", "PidMode", "NetworkMode", "IpcMode", "UsernsMode"]) {
      expect(HostConfig).not.toHaveProperty(key);
    }
  });

  it.each([
    ["", "", true],
    ["0:0", "", true],
    ["root", "1000", true],
    ["", "1000", false],
    ["web", "", false],
    ["10:0", "", false],
  ])("should grant capabilities only to root: user %j in an image with user %j", (user, own, has) => {
    const { HostConfig } = settings({ plan: { ...PLAN, user }, image: { ...IMAGE, user: own } });
    expect(HostConfig?.CapAdd?.length).toBe(has ? 7 : 0);
  });

  it("should grant only the assigned GPUs", () => {
    const gpuUuids = ["GPU-1", "GPU-2"];
    expect(settings({}, { gpuUuids }).HostConfig?.DeviceRequests).toEqual([
      { Driver: "nvidia", DeviceIDs: gpuUuids, Capabilities: [["gpu"]] },
    ]);
    const names = settings({ engine: "podman" }, { gpuUuids }).HostConfig?.Devices?.map(
      ({ PathOnHost }: { PathOnHost: string }) => PathOnHost,
    );
    expect(names).toEqual(["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"]);
    expect(settings({}, { gpuUuids }).Env).toContain("NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2");
    expect(settings().Env).toContain("NVIDIA_VISIBLE_DEVICES=void");
    expect(settings().HostConfig).not.toHaveProperty("DeviceRequests");
  });
});
