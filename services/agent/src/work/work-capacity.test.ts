import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GreetingSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { loadConfig } from "@rollcall/config";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { parseAllocated, workCapacity } from "./work-capacity.ts";
import { checkWorkConfig, parsePorts, parseUserIds, workKeys } from "./work-keys.ts";

const whole = { share: 1 };
const GI = 1024 ** 3;

describe("parseAllocated()", () => {
  it.each([
    [{}, {}],
    [
      { CPU: "80%", Memory: "150 %", gpu: "100%" },
      { cpu: { share: 0.8 }, memory: { share: 1.5 } },
    ],
    [{ CPU: "", Memory: "", Disk: "", GPU: "" }, {}],
    [{ cores: "2" }, { cpu: { amount: 2 } }],
    [{ cpu: "500m" }, { cpu: { amount: 0.5 } }],
    [{ cpu: "0" }, { cpu: { amount: 0 } }],
    [{ Memory: "4GB" }, { memory: { amount: 4e9 } }],
    [{ Memory: "4gb" }, { memory: { amount: 4e9 } }],
    [{ Memory: " 4 GiB " }, { memory: { amount: 4 * GI } }],
    [{ Memory: "4Gi" }, { memory: { amount: 4 * GI } }],
    [{ Memory: "1.5G" }, { memory: { amount: 1.5e9 } }],
    [{ Memory: "512Mb" }, { memory: { amount: 512e6 } }],
    [{ Disk: "1048576" }, { disk: { amount: 1_048_576 } }],
    [{ Disk: "0" }, { disk: { amount: 0 } }],
  ])("should read %j", (texts, allocated) => {
    expect(parseAllocated(texts)).toEqual({
      ok: true,
      allocated: { cpu: whole, memory: whole, disk: whole, ...allocated },
    });
  });

  it.each([
    [{ ram: "1" }, "unknown resource ram"],
    [{ cpu: "much" }, "cpu is neither a percentage such as 80% nor an amount: much is not a number of processors"],
    [{ cpu: "-1" }, "-1 is not a number of processors"],
    [{ cpu: "10001%" }, "neither a percentage"],
    [{ cpu: "4GB" }, "4GB is not a number of processors"],
    [{ memory: "0.9" }, "0.9 is a fraction of a byte"],
    [{ memory: "512m" }, "512m is ambiguous"],
    [{ memory: "-4GB" }, "-4GB is not an amount of bytes"],
    [{ memory: "4XB" }, "4XB is not an amount of bytes"],
    [{ gpu: "1" }, "all GPUs are always offered"],
  ])("should refuse %j", (texts, problem) => {
    expect(parseAllocated(texts)).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe("checkWorkConfig()", () => {
  const problems = (flags: Readonly<Record<string, string>>) => {
    const loaded = loadConfig({ keys: workKeys, flags });
    if (!loaded.ok) throw new Error("the values are not of their types");
    return checkWorkConfig(loaded.config.values).map(({ path, message }) => `${path}: ${message}`);
  };
  const grants = (text: string) => problems({ "Work.Secrets": "/s", "Work.SecretGrants": text });

  it("should accept one or several grants for a secret", () => {
    expect(grants("password=token:ci/web  token:ops/*,key=user:a@b.example/backup-*")).toEqual([]);
    expect(grants("")).toEqual([]);
  });

  it.each([
    ["password=web", "Work.SecretGrants: password: web is not OWNER/JOB, such as token:ci/web or token:ci/*"],
    ["../key=token:ci/web", "Work.SecretGrants: ../key is not the name of a file in Work.Secrets"],
    [`password=${"token:ci/web ".repeat(65)}`, "Work.SecretGrants: password has 65 grants; 64 are allowed"],
    [
      Array.from({ length: 65 }, (_, index) => `s${index}=token:ci/web`).join(","),
      "Work.SecretGrants: has 65 secrets; 64 are allowed",
    ],
  ])("should refuse %s", (text, problem) => {
    expect(grants(text)).toEqual([problem]);
  });

  it("should refuse grants without a directory of secrets", () => {
    expect(problems({ "Work.SecretGrants": "password=token:ci/web" })).toEqual([
      "Work.SecretGrants: needs Work.Secrets, the directory of the secrets",
    ]);
  });
});

describe("workCapacity()", () => {
  const allocated = { cpu: { share: 0.5 }, memory: { share: 0.25 }, disk: { share: 2 } };
  const given = { allocated, ports: { min: 100, max: 200 } };

  it("should be a share of the machine's capacity", () => {
    const greeting = create(GreetingSchema, { executors: ["process"], limits: ["cpu"], users: ["web"] });
    expect(workCapacity(SMALL_FACTS, greeting, given)).toMatchObject({
      executors: ["process"],
      millicores: 4_000,
      memoryBytes: 4n * 1024n ** 3n,
      diskBytes: 200n * 1024n ** 3n,
      portMin: 100,
      portMax: 200,
      limits: ["cpu"],
      users: ["web"],
    });
  });

  it("should be an amount, at most the machine's capacity", () => {
    const greeting = create(GreetingSchema, { executors: ["process"] });
    const amounts = { cpu: { amount: 1.5 }, memory: { amount: 4e9 }, disk: { amount: 1e15 } };
    expect(workCapacity(SMALL_FACTS, greeting, { ...given, allocated: amounts })).toMatchObject({
      millicores: 1_500,
      memoryBytes: 4_000_000_000n,
      diskBytes: BigInt(SMALL_FACTS.diskBytes ?? 0),
    });
  });

  it("should omit amounts that are unknown, whatever share or amount is allocated", () => {
    const greeting = create(GreetingSchema, { executors: ["process"] });
    const facts = { ...SMALL_FACTS, memoryBytes: undefined, diskBytes: undefined };
    const unknown = { ...facts, cpu: { ...facts.cpu, usableMillis: undefined } };
    for (const one of [given, { ...given, allocated: { ...allocated, memory: { amount: 4e9 } } }]) {
      const capacity = workCapacity(unknown, greeting, one);
      expect([capacity?.millicores, capacity?.memoryBytes, capacity?.diskBytes]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
  });

  it("should be none before a keeper has answered, and for one without executors", () => {
    expect(workCapacity(SMALL_FACTS, null, given)).toBeUndefined();
    expect(workCapacity(SMALL_FACTS, create(GreetingSchema), given)).toBeUndefined();
  });
});

describe("parsePorts()", () => {
  it.each([
    ["20000-32000", { min: 20_000, max: 32_000 }],
    ["none", { min: 0, max: 0 }],
    ["2-1", null],
    ["0-10", null],
    ["1-65536", null],
  ])("should read %s", (words, range) => {
    expect(parsePorts(words)).toEqual(range);
  });
});

describe("parseUserIds()", () => {
  it.each([
    ["56000-59999", [56_000, 59_999]],
    ["none", null],
  ])("should read %s", (words, range) => {
    expect(parseUserIds(words)).toEqual({ ok: true, range });
  });

  it.each(["0-10", "999-2000", "2000-1999", "1000-66536", "4294967290-4294967295"])("should refuse %s", (words) => {
    expect(parseUserIds(words).ok).toBe(false);
  });
});
