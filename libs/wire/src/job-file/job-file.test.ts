import { readFileSync } from "node:fs";
import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import fc from "fast-check";
import { type FiledJob, type JobFile, parseJobFile, problemLine } from "./job-file.ts";
import { JOB_FILE_KEYS, type JobFileKey } from "./job-file-keys.ts";

const WHOLE = `name: web
type: service
count: 3
selector: "zone in (a, b), !gpu"
matchAgentLabels: true
constraints: {node: n1, gpuModel: h100, gpuIndices: [0, 3], minAgentVersion: 0.2.0, os: linux, architecture: x64}
resources: {cores: 0.5, memory: 256Mi, disk: 1.5G, gpus: 2, ports: {http: dynamic, ssh: 22}}
process:
  command: [python3, -m, http.server, "$PORT_HTTP", 8]
  env: {MODE: prod, LEVEL: 1.10, DEBUG: true}
  secretEnv: {KEY: key.txt}
  directory: /srv/web
  user: web
  stop: {signal: SIGINT, grace: 1m30s}
  output: {maxFileSize: 1Mi, maxFiles: 2}
check: {http: {port: http, path: /health}, interval: 5s, timeout: 500ms, failures: 4}
loss: {lostAfter: 0s, stopOnAgentAfter: 10m, replace: false, reconcile: keep-original}
retry: {attempts: 0, backoff: constant, interval: 5s, max: 5m}
update: {maxParallel: 2, maxSurge: 1, minReadyTime: 10s, readyDeadline: 1h, autoRevert: true}
placement: {strategy: spread, maxPerNode: 1}
queueTimeout: 1h
maxRunTime: 7d
annotations: {team: web, cost: 12}
`;

function jobsOf(file: JobFile): readonly FiledJob[] {
  if (file.ok) return file.jobs;
  throw new Error(file.problems.map((problem) => problemLine("web.yaml", problem)).join("\n"));
}

function linesOf(text: string): readonly string[] {
  const file = parseJobFile(text);
  return file.ok ? [] : file.problems.map((problem) => problemLine("web.yaml", problem));
}

const MINIMAL = "name: a\ntype: batch\nprocess: {command: [x]}\n";

describe("parseJobFile()", () => {
  it("should read every key", () => {
    const [job] = jobsOf(parseJobFile(WHOLE));
    expect(job === undefined ? null : toJson(JobSpecSchema, job.spec)).toEqual({
      ...{ name: "web", type: "JOB_TYPE_SERVICE", count: 3, selector: "zone in (a, b), !gpu", matchAgentLabels: true },
      constraints: {
        ...{ node: "n1", gpuModel: "h100", gpuIndices: [0, 3], minAgentVersion: "0.2.0", os: "linux" },
        architecture: "x64",
      },
      resources: {
        ...{ millicores: 500, memoryBytes: String(256 * 1024 ** 2), diskBytes: "1500000000", gpus: 2 },
        ports: [{ label: "http" }, { label: "ssh", port: 22 }],
      },
      process: {
        command: ["python3", "-m", "http.server", "$PORT_HTTP", "8"],
        env: { MODE: "prod", LEVEL: "1.10", DEBUG: "true" },
        ...{ secretEnv: { KEY: "key.txt" }, directory: "/srv/web", user: "web" },
        stop: { signal: "SIGINT", grace: "90s" },
        output: { maxFileBytes: "1048576", maxFiles: 2 },
      },
      check: { http: { port: "http", path: "/health" }, interval: "5s", timeout: "0.500s", failures: 4 },
      loss: {
        ...{ lostAfter: "0s", stopOnAgentAfter: "600s", noReplace: true },
        reconcile: "RECONCILE_POLICY_KEEP_ORIGINAL",
      },
      retry: { attempts: 0, backoff: "BACKOFF_CONSTANT", interval: "5s", max: "300s" },
      update: { maxParallel: 2, maxSurge: 1, minReadyTime: "10s", readyDeadline: "3600s", autoRevert: true },
      placement: { strategy: "PLACEMENT_STRATEGY_SPREAD", maxPerNode: 1 },
      ...{ queueTimeout: "3600s", maxRunTime: "604800s", annotations: { team: "web", cost: "12" } },
    });
  });

  it("should read JSON, containers and other probes", () => {
    const docker =
      '{"name":"a","type":"daemon","docker":{"image":"x@sha256:1"},"check":{"command":["test","-f","/x"]}}';
    const [job] = jobsOf(parseJobFile(docker));
    expect(job?.spec.task).toMatchObject({ case: "docker", value: { image: "x@sha256:1" } });
    expect(job?.spec.check?.probe).toMatchObject({ case: "command", value: { command: ["test", "-f", "/x"] } });
    const tcp = jobsOf(parseJobFile(`${MINIMAL}check: {tcp: {port: db}}`))[0];
    expect(tcp?.spec.check?.probe).toMatchObject({ case: "tcp", value: { port: "db" } });
  });

  it("should read several documents as several jobs, and skip empty ones", () => {
    const jobs = jobsOf(parseJobFile(`---\n${MINIMAL}---\n# nothing\n---\n${MINIMAL.replace(": a", ": b")}`));
    expect(jobs.map(({ spec }) => spec.name)).toEqual(["a", "b"]);
  });

  it("should follow anchors", () => {
    const jobs = jobsOf(parseJobFile(`${MINIMAL}annotations: &it {team: web}\n---\n${MINIMAL.replace(": a", ": b")}`));
    expect(jobs).toHaveLength(2);
    const [job] = jobsOf(parseJobFile("name: a\ntype: batch\nprocess: {command: [x], env: &e {A: b}, secretEnv: *e}"));
    expect(job?.spec.task.value).toMatchObject({ env: { A: "b" }, secretEnv: { A: "b" } });
  });

  it("should report every problem at once, with its line, column and key", () => {
    const text = `name: web
type: srvice
cuont: 3
selector: "zone in a"
resources: {cores: much, memory: 256MB2, ports: {http: any}}
process:
  command: python3
  env: {MODE: [a]}
  stop:
docker: {command: [x]}
check: {tcp: {}, http: {port: a}, interval: soon}
retry: {attempts: -1}
`;
    expect(linesOf(text)).toEqual([
      "web.yaml:2:7: type: should be one of batch, service, ops, daemon; did you mean service?",
      "web.yaml:3:1: cuont: unknown key; did you mean count?",
      expect.stringMatching(/^web\.yaml:4:11: selector: /),
      "web.yaml:5:20: resources.cores: much is not a number of processors such as 2, 0.5 or 500m",
      expect.stringMatching(/^web\.yaml:5:34: resources\.memory: 256MB2 is not an amount of bytes/),
      expect.stringMatching(/^web\.yaml:5:56: resources\.ports\.http: should be dynamic, or the number of a port/),
      "web.yaml:7:12: process.command: should be a list, for example [a, b]",
      "web.yaml:8:15: process.env.MODE: should be a string",
      "web.yaml:9:3: process.stop: has no value; set one, or remove the key",
      "web.yaml:10:1: docker: process is also given; give only one of process or docker",
      "web.yaml:10:9: docker.image: is required",
      "web.yaml:11:14: check.tcp.port: is required",
      "web.yaml:11:18: check.http: tcp is also given; give only one of tcp, http or command",
      expect.stringMatching(/^web\.yaml:11:45: check\.interval: should be a duration such/),
      "web.yaml:12:19: retry.attempts: should be a whole number from 0 to 10000",
    ]);
  });

  it.each([
    ["", ["web.yaml:1:1: the file contains no job"]],
    ["# only a remark\n", ["web.yaml:1:1: the file contains no job"]],
    ["- a\n", ["web.yaml:1:1: a job should be a map of keys"]],
    ["name: a\n", ["web.yaml:1:1: type: is required", "web.yaml:1:1: process or docker is required"]],
    ["name: a\nname: b\n", [expect.stringMatching(/^web\.yaml:2:1: Map keys must be unique/)]],
    ["name: [a\n", [expect.stringMatching(/^web\.yaml:2:1: /)]],
    [`${MINIMAL}---\n${MINIMAL}`, ["web.yaml:5:7: name: another job in the file is named a"]],
    [`${MINIMAL}lost_after: 5s\n`, ["web.yaml:4:1: lost_after: unknown key"]],
    [`${MINIMAL}loss: {lost_after: 5s}\n`, ["web.yaml:4:8: loss.lost_after: unknown key; did you mean lostAfter?"]],
    [`${MINIMAL}loss: {replace: maybe}\n`, ["web.yaml:4:17: loss.replace: should be true or false"]],
    [`${MINIMAL}process: *it\n`, [expect.stringContaining("unique")]],
  ])("should refuse %j", (text, expected) => {
    expect(linesOf(text)).toEqual(expect.arrayContaining(expected));
  });

  it.each([
    ["0", 0],
    ["2", 2000],
    ["0.125", 125],
    ["250m", 250],
  ])("should read %s cores", (text, millicores) => {
    const [job] = jobsOf(parseJobFile(`${MINIMAL}resources: {cores: ${text}}`));
    expect(job?.spec.resources?.millicores ?? 0).toBe(millicores);
  });

  it("should find the position of an API field, and the closest one for a field that is not written", () => {
    const [job] = jobsOf(parseJobFile(WHOLE));
    const placeOf = (field: string) => {
      const { line, column, path } = job?.placeOf(field) ?? { line: 0, column: 0, path: "" };
      return `${line}:${column} ${path}`;
    };
    expect(placeOf("resources.memory_bytes")).toBe("7:33 resources.memory");
    expect(placeOf("resources.ports[1].label")).toBe("7:89 resources.ports.ssh");
    expect(placeOf('process.env["MODE"]')).toBe("10:15 process.env.MODE");
    expect(placeOf("process.command[2]")).toBe("9:26 process.command[2]");
    expect(placeOf("process.stop.signal")).toBe("14:18 process.stop.signal");
    expect(placeOf("check.http.port")).toBe("16:22 check.http.port");
    expect(placeOf("loss.no_replace")).toBe("17:55 loss.replace");
    expect(placeOf("docker.image")).toBe("1:1 ");
    expect(placeOf("")).toBe("1:1 ");
  });

  it("should never throw, whatever the file contains", () => {
    const pieces = fc.constantFrom(
      ...[
        "name",
        "type",
        "process",
        "command",
        "env",
        "ports",
        "resources",
        ": ",
        "- ",
        "\n",
        "  ",
        "[",
        "]",
        "{",
        "}",
      ],
      ...["&a ", "*a", "!!x ", '"', "#", "---\n", "0x", "null", "?", "|", "__proto__", ",", "1e999", "\u0000"],
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const file = parseJobFile(parts.join(""));
        if (!file.ok) expect(file.problems.length).toBeGreaterThan(0);
      }),
    );
  });
});

/** The paths of keys, for example "process.stop.grace". */
function pathsOf(keys: readonly JobFileKey[], before = ""): readonly string[] {
  return keys.flatMap(({ name, value }) => {
    const path = `${before}${name}`;
    return value.kind === "block" ? [path, ...pathsOf(value.keys, `${path}.`)] : [path];
  });
}

describe("docs/job-file.md", () => {
  const page = readFileSync(new URL("../../../../docs/job-file.md", import.meta.url), "utf8");

  it("should describe the keys of the job file, all of them and no others, in their order", () => {
    const described = [...page.matchAll(/^\| `([A-Za-z.]+)` \|/gm)].map(([, path]) => path);
    expect(described).toEqual(pathsOf(JOB_FILE_KEYS));
  });

  it("should have valid examples", () => {
    const examples = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = ""]) => text);
    expect(examples.length).toBeGreaterThan(2);
    for (const example of examples) expect(linesOf(example)).toEqual([]);
  });
});
