import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import type { Grant } from "../execution.ts";
import type { JobSpec } from "../job-spec.ts";
import type { NodeCapacity, WorkNode } from "../work-node.ts";
import { chooseGrant } from "./choose-grant.ts";
import { classFacts, mismatches } from "./node-class.ts";
import { NodePool } from "./node-pool.ts";
import { placementRequest } from "./placement-request.ts";
import { PlacementSearch } from "./placement-search.ts";

const GIB = 2 ** 30;

function capacityOf(id: string): NodeCapacity {
  const { capacity } = workNode(id);
  if (capacity === null) throw new Error("it has none");
  return capacity;
}

/**
 * Create a pool of nodes, and a search for a job that counts its executions. Returns both, and functions that place and
 * release executions.
 */
function begin(nodes: readonly WorkNode[], part: Partial<JobSpec> = {}) {
  const pool = new NodePool();
  for (const node of nodes) pool.put(node);
  const request = placementRequest(jobSpec(part));
  pool.use(request);
  const counts = new Map<string, number>();
  const search = new PlacementSearch(pool, request, { counts, staying: counts });
  /** Place one execution. Returns its node and grant; null if no node fits. */
  const place = (): { nodeId: string; grant: Grant } | null => {
    const node = search.best();
    if (node === null) return null;
    const grant = chooseGrant(node, request);
    if (grant === null) throw new Error(`node ${node.id} was found, and does not fit`);
    pool.take(node.id, grant);
    counts.set(node.id, (counts.get(node.id) ?? 0) + 1);
    return { nodeId: node.id, grant };
  };
  const placeAll = (most = 1_000) => {
    const placed: string[] = [];
    for (let one = place(); one !== null && placed.length < most; one = place()) placed.push(one.nodeId);
    return placed;
  };
  return { pool, request, counts, search, place, placeAll };
}

const NODES = [workNode("a"), workNode("b"), workNode("c")];

describe("PlacementSearch", () => {
  it("should fill one node after the other", () => {
    expect(begin(NODES).placeAll()).toEqual(["a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "c", "c"]);
  });

  it("should begin with the fullest node that fits", () => {
    const { pool, place } = begin(NODES);
    pool.take("c", { millicores: 2_500, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] });
    pool.take("b", { millicores: 3_500, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] });
    expect([place()?.nodeId, place()?.nodeId]).toEqual(["c", "a"]);
  });

  it("should spread over the nodes with the fewest executions of the job, the emptiest first", () => {
    const { pool, placeAll } = begin(NODES, { strategy: "spread" });
    pool.take("b", { millicores: 1_500, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] });
    expect(placeAll(7)).toEqual(["c", "a", "b", "c", "a", "b", "c", "a"].slice(0, 7));
  });

  it("should place evenly: fewest executions of the job first, then calm nodes, then the fullest", () => {
    const nodes = [...NODES, workNode("d", { disturbedUntilMs: 1_000 })];
    const { pool, placeAll } = begin(nodes, { strategy: "even" });
    const taken = { millicores: 1_500, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] };
    for (const id of ["b", "d"]) pool.take(id, taken);
    expect(placeAll(6)).toEqual(["b", "a", "c", "d", "b", "a"]);
  });

  it("should avoid nodes and place evenly on the others", () => {
    const { counts, pool, search } = begin(NODES, { strategy: "even" });
    const grant = { millicores: 1_000, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] };
    for (const id of ["a", "a", "b"]) {
      pool.take(id, grant);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    expect(search.best()?.id).toBe("c");
    expect(search.bestBut(new Set(["c"]))?.id).toBe("b");
    expect(search.bestBut(new Set(["b", "c"]))?.id).toBe("a");
    expect(search.bestBut(new Set(["a", "b", "c"]))).toBeNull();
  });

  it.each(["even", "spread"] as const)("should examine few nodes for each placement (%s)", (strategy) => {
    const looked = (size: number) => {
      const { pool, counts, search, request } = begin(
        Array.from({ length: size }, (_, at) => workNode(`n${at}`)),
        { strategy, resources: { ...jobSpec().resources, millicores: 100, memoryBytes: 0 } },
      );
      let reads = 0;
      const get = counts.get.bind(counts);
      counts.get = (id) => {
        reads += 1;
        return get(id);
      };
      const held: { id: string; grant: Grant }[] = [];
      // Place two executions per node, and sometimes release one, as an update does.
      for (let placed = 0; placed < 2 * size; placed += 1) {
        const node = search.best();
        if (node === null) throw new Error("nothing fits");
        const grant = chooseGrant(node, request) as Grant;
        pool.take(node.id, grant);
        counts.set(node.id, (get(node.id) ?? 0) + 1);
        held.push({ id: node.id, grant });
        if (placed % 3 !== 2) continue;
        const [gone] = held.splice((placed * 7919) % held.length, 1);
        if (gone === undefined) continue;
        pool.release(gone.id, gone.grant);
        counts.set(gone.id, (get(gone.id) ?? 0) - 1);
      }
      return reads / (2 * size);
    };
    expect(looked(2_000)).toBeLessThan(2 * looked(200) + 10);
  });

  it.each(["bin-pack", "spread", "even"] as const)("should prefer machines that enforce limits (%s)", (strategy) => {
    const { capacity } = workNode("a");
    const lax = workNode("a", { capacity: capacity && { ...capacity, limits: ["cpu"] } });
    const nodes = [lax, workNode("b")];
    expect(begin(nodes, { strategy }).place()?.nodeId).toBe("b");
    const { resources } = jobSpec();
    const noMemory = { resources: { ...resources, memoryBytes: 0 } };
    expect(begin(nodes, { strategy, ...noMemory }).place()?.nodeId).toBe(strategy === "spread" ? "b" : "a");
    expect(begin([lax], { strategy }).place()?.nodeId).toBe("a");
  });

  it.each([
    ["checks", { checked: true }],
    ["secrets", { secrets: ["password"] }],
    ["stop-on-agent-after", { loss: { ...jobSpec().loss, stopOnAgentAfterMs: 60_000 } }],
  ])("should place nothing that needs %s on a node that lacks it", (lack, part) => {
    const capacity = { ...capacityOf("b"), secrets: [{ name: "password", grants: ["token:ci/web"] }] };
    const plain = { checked: false };
    const lacking = mismatches(
      classFacts(workNode("b", { capacity: { ...capacity, lacks: [lack] } }), []),
      placementRequest(jobSpec({ ...plain, ...part })),
    );
    expect(lacking).toEqual(["EXECUTOR_LACKS_SOMETHING"]);
    const others = ["checks", "secrets", "stop-on-agent-after"].filter((one) => one !== lack);
    const lacksOthers = classFacts(workNode("c", { capacity: { ...capacity, lacks: others } }), []);
    expect(mismatches(lacksOthers, placementRequest(jobSpec({ ...plain, ...part })))).toEqual([]);
    const request = placementRequest(jobSpec(plain));
    expect(request.signature).not.toBe(placementRequest(jobSpec({ ...plain, ...part })).signature);
  });

  it("should use a node's secrets only for owners and jobs that it grants them to", () => {
    const secrets = [
      { name: "password", grants: ["token:ci/web"] },
      { name: "key", grants: ["*/*"] },
    ];
    const facts = classFacts(workNode("b", { capacity: { ...capacityOf("b"), secrets } }), []);
    const refused = (part: Partial<JobSpec>) => mismatches(facts, placementRequest(jobSpec(part)));
    expect(refused({ secrets: ["key", "password"] })).toEqual([]);
    expect(refused({ secrets: ["key"], owner: "token:other" })).toEqual([]);
    expect(refused({ secrets: ["key", "password"], owner: "token:other" })).toEqual(["SECRET_NOT_ALLOWED"]);
    expect(refused({ secrets: ["password"], name: "other" })).toEqual(["SECRET_NOT_ALLOWED"]);
    expect(refused({ secrets: ["unknown"] })).toEqual(["SECRET_NOT_ALLOWED"]);
    const signatures = ["token:ci", "token:other"].map(
      (owner) => placementRequest(jobSpec({ secrets: ["key"], owner })).signature,
    );
    expect(new Set(signatures).size).toBe(2);
  });

  it("should place no more than max_per_node on one node", () => {
    expect(begin(NODES, { maxPerNode: 1 }).placeAll()).toEqual(["a", "b", "c"]);
    expect(begin(NODES, { maxPerNode: 2, strategy: "spread" }).placeAll().sort()).toEqual([..."aabbcc"]);
  });

  it("should place one execution with a static port on a node, again once the port is returned", () => {
    const resources = { ...jobSpec().resources, ports: { http: 8_080, admin: 0 } };
    const { pool, counts, place } = begin(NODES, { resources });
    const grants = [place(), place(), place()];
    expect(grants.map((one) => one?.nodeId)).toEqual(["a", "b", "c"]);
    expect(grants[0]?.grant.ports).toEqual({ http: 8_080, admin: 20_000 });
    expect(place()).toBeNull();
    pool.release("b", grants[1]?.grant as Grant);
    counts.delete("b");
    expect(place()).toMatchObject({ nodeId: "b", grant: { ports: { http: 8_080, admin: 20_001 } } });
  });

  it("should give each GPU once, by UUID", () => {
    const gpus = [
      { index: 0, uuid: "u0", model: "nvidia a100" },
      { index: 1, uuid: "u1", model: "nvidia h100 80gb" },
      { index: 2, uuid: "u2", model: "nvidia h100 80gb" },
    ];
    const spec = jobSpec();
    const { place } = begin([workNode("g", { gpus }), workNode("h")], {
      resources: { ...spec.resources, gpus: 1 },
      constraints: { ...spec.constraints, gpuModel: "h100" },
    });
    expect([place(), place(), place()]).toMatchObject([
      { nodeId: "g", grant: { gpuUuids: ["u1"] } },
      { nodeId: "g", grant: { gpuUuids: ["u2"] } },
      null,
    ]);
  });

  it("should give no GPU of a node whose GPUs are only remembered, and all else of it", () => {
    const gpus = [{ index: 0, uuid: "u0", model: "nvidia a100" }];
    const { resources } = jobSpec();
    const withGpu = begin([workNode("g", { gpus, unknown: ["gpus"] })], { resources: { ...resources, gpus: 1 } });
    expect(withGpu.place()).toBeNull();
    expect(begin([workNode("g", { gpus, unknown: ["gpus"] })], { resources }).place()).toMatchObject({ nodeId: "g" });
  });

  it("should place nothing on nodes that may not take work, and disconnected ones last", () => {
    const nodes = [
      workNode("pending", { membership: "PENDING" }),
      workNode("rejected", { membership: "REJECTED" }),
      workNode("unhealthy", { health: "UNHEALTHY" }),
      workNode("unknown", { health: "UNKNOWN" }),
      workNode("cordoned", { holds: ["OPERATOR"] }),
      workNode("draining", { holds: ["DRAIN"] }),
      workNode("control", { type: "ORCHESTRATOR" }),
      workNode("idle", { capacity: null }),
      workNode("a-disconnected", { connection: "DISCONNECTED" }),
      workNode("b"),
    ];
    expect([...new Set(begin(nodes).placeAll())]).toEqual(["b", "a-disconnected"]);
  });

  it("should follow nodes that change", () => {
    const { pool, placeAll } = begin([workNode("a")]);
    expect(placeAll()).toEqual(["a", "a", "a", "a"]);
    pool.put(workNode("b", { holds: ["OPERATOR"] }));
    expect(placeAll()).toEqual([]);
    pool.put(workNode("b"));
    expect(placeAll(2)).toHaveLength(2);
    pool.delete("b");
    expect(placeAll()).toEqual([]);
  });

  it("should use a node's own labels only if the job opts in", () => {
    const nodes = [workNode("a", { labels: new Map([["zone", "x"]]) })];
    expect(begin(nodes, { selector: "zone = x" }).placeAll()).toEqual([]);
    expect(begin(nodes, { selector: "zone = x", matchAgentLabels: true }).placeAll()).toHaveLength(4);
  });

  it("should avoid nodes while others fit", () => {
    const { search } = begin(NODES);
    expect(search.bestBut(new Set(["a"]))?.id).toBe("b");
    expect(search.bestBut(new Set(["a", "b", "c"]))).toBeNull();
  });

  it("should find a node whenever there is one, and only nodes that fit, whatever is taken and returned", () => {
    const node = fc.record({
      millicores: fc.integer({ min: 0, max: 4_000 }),
      memory: fc.integer({ min: 0, max: 4 }),
      zone: fc.constantFrom("x", "y"),
      holds: fc.constantFrom([], [], [], ["OPERATOR" as const]),
      disturbedUntilMs: fc.constantFrom(null, null, 1_000),
    });
    const request = fc.record({
      millicores: fc.integer({ min: 0, max: 1_500 }),
      memory: fc.integer({ min: 0, max: 2 }),
      port: fc.constantFrom(null, 80, 81, 0),
      selector: fc.constantFrom("", "zone = x"),
      strategy: fc.constantFrom("spread" as const, "bin-pack" as const, "even" as const),
      maxPerNode: fc.constantFrom(0, 0, 1, 2),
    });
    const step = fc.oneof(
      fc.record({ job: fc.nat(3) }),
      fc.record({ release: fc.nat(100) }),
      fc.record({ put: fc.nat(7), as: node }),
    );
    const toNode = (
      id: number,
      it: {
        millicores: number;
        memory: number;
        zone: string;
        holds: readonly "OPERATOR"[];
        disturbedUntilMs: number | null;
      },
    ) =>
      workNode(`n${id}`, {
        capacity: {
          ...(workNode("x").capacity as NonNullable<WorkNode["capacity"]>),
          ...{ millicores: it.millicores, memoryBytes: it.memory * GIB },
        },
        grantedLabels: new Map([["zone", it.zone]]),
        holds: it.holds,
        disturbedUntilMs: it.disturbedUntilMs,
      });
    fc.assert(
      fc.property(
        fc.array(node, { maxLength: 8 }),
        fc.array(request, { minLength: 4, maxLength: 4 }),
        fc.array(step, { maxLength: 60 }),
        (nodes, requests, steps) => {
          const pool = new NodePool();
          nodes.forEach((it, id) => {
            pool.put(toNode(id, it));
          });
          const jobs = requests.map((it) => {
            const ports: Record<string, number> = it.port === null ? {} : { p: it.port };
            const resources = { millicores: it.millicores, memoryBytes: it.memory * GIB, diskBytes: 0, gpus: 0, ports };
            const { selector, strategy, maxPerNode } = it;
            const prepared = placementRequest(jobSpec({ resources, selector, strategy, maxPerNode }));
            pool.use(prepared);
            const counts = new Map<string, number>();
            return { prepared, counts, search: new PlacementSearch(pool, prepared, { counts, staying: counts }) };
          });
          const held: { job: number; nodeId: string; grant: Grant }[] = [];
          for (const it of steps) {
            if ("put" in it) {
              pool.put(toNode(it.put, it.as));
              continue;
            }
            if ("release" in it) {
              const [one] = held.splice(it.release % Math.max(1, held.length), 1);
              if (one === undefined) continue;
              pool.release(one.nodeId, one.grant);
              const { counts } = jobs[one.job] as (typeof jobs)[number];
              counts.set(one.nodeId, (counts.get(one.nodeId) ?? 0) - 1);
              continue;
            }
            const { prepared, counts, search } = jobs[it.job] as (typeof jobs)[number];
            const best = search.best();
            const possible = [...pool.nodes()].filter(
              (other) =>
                other.node.holds.length === 0 &&
                (prepared.spec.selector === "" || other.node.grantedLabels.get("zone") === "x") &&
                (prepared.spec.maxPerNode === 0 || (counts.get(other.id) ?? 0) < prepared.spec.maxPerNode) &&
                chooseGrant(other, prepared) !== null,
            );
            expect(best === null).toBe(possible.length === 0);
            if (best === null) continue;
            expect(possible.map(({ id }) => id)).toContain(best.id);
            if (prepared.spec.strategy !== "bin-pack") {
              const fewest = Math.min(...possible.map(({ id }) => counts.get(id) ?? 0));
              expect(counts.get(best.id) ?? 0).toBe(fewest);
              const isAnyCalm = possible.some(
                (other) => (counts.get(other.id) ?? 0) === fewest && other.node.disturbedUntilMs === null,
              );
              if (prepared.spec.strategy === "even") expect(best.node.disturbedUntilMs === null).toBe(isAnyCalm);
            } else if (!prepared.isPicky) {
              expect(best.free.millicores).toBe(Math.min(...possible.map(({ free }) => free.millicores)));
            }
            const grant = chooseGrant(best, prepared) as Grant;
            pool.take(best.id, grant);
            counts.set(best.id, (counts.get(best.id) ?? 0) + 1);
            held.push({ job: it.job, nodeId: best.id, grant });
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
