import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  AgentTrustSchema,
  AgentVersionSchema,
  DiagnosisService,
  DuplicatedNodeSchema,
  GetDiagnosisResponseSchema,
  ProcessFactsSchema,
  StandbyFactsSchema,
  StoreFactsSchema,
  UnknownResourcesSchema,
  WaitFactsSchema,
} from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { NodeTrustSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import {
  type AgentTrustFacts,
  countAgentTrust,
  countAgentVersions,
  listDuplicatedNodes,
  listHealthReplicas,
  listProcessReports,
  listStatementWaits,
  listUncontainedNodes,
  listUnknownResources,
  type ProcessReport,
  readStoreFacts,
  type Standby,
  type StatementWait,
  type StoreFacts,
  storeTimeMs,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";

/**
 * Who can call the diagnosis methods. The responses contain addresses and versions, which would also help an attacker.
 */
export const DIAGNOSIS_POLICIES: PolicyTable = definePolicies(DiagnosisService, {
  getDiagnosis: { caller: "admin", deadlineMs: 20_000, idempotent: true },
});

/** Register the diagnosis methods. */
export function routeDiagnosis(router: ConnectRouter, services: AdminServices): void {
  router.service(DiagnosisService, { getDiagnosis: getDiagnosis(services) });
}

function getDiagnosis(services: AdminServices): MethodImpl<typeof DiagnosisService.method.getDiagnosis> {
  const { store, clock } = services;
  return async () => {
    const { db } = store;
    const unanswered: string[] = [];
    // Read each part within a time limit. Callers look for slow parts, so a locked table must not hide the other
    // results.
    const within = async <T>(field: string, reading: Promise<T>, otherwise: T, ms = PART_WITHIN_MS): Promise<T> => {
      const answered = new AbortController();
      const late = clock.sleep(ms, answered.signal).then(
        () => {
          unanswered.push(field);
          return otherwise;
        },
        () => otherwise,
      );
      // Ignore a late failure, because no caller waits for it any longer.
      reading.catch(() => {});
      return Promise.race([reading, late]).finally(() => answered.abort());
    };
    const [latencyMs, facts, reports, versions, replicas, duplicated, uncontained, unknown, trust] = await Promise.all([
      within("record.latency", measureLatency(services), PART_WITHIN_MS),
      within("record", readStoreFacts(db), null),
      within("processes", listProcessReports(db), []),
      within("agent_versions", countAgentVersions(db), []),
      within("agent_endpoints", listHealthReplicas(db), []),
      within("duplicated_nodes", listDuplicatedNodes(db), []),
      within("uncontained_nodes", listUncontainedNodes(db), []),
      within("unknown_resources", listUnknownResources(db), []),
      within("agent_trust", countAgentTrust(db), []),
    ]);
    // Read this last, so that it shows what blocked the other reads.
    const waits = await within("record.waits", listStatementWaits(db), [], WAITS_WITHIN_MS);
    return create(GetDiagnosisResponseSchema, {
      time: timestampFromMs(clock.wallMs()),
      ...(facts === null ? {} : { record: recordToProto(facts, latencyMs, waits) }),
      unanswered,
      processes: reports.map(processToProto),
      agentVersions: versions.map((it) => create(AgentVersionSchema, it)),
      agentEndpoints: [...new Set(replicas.map(({ agentEndpoint }) => agentEndpoint))],
      duplicatedNodes: duplicated.map(({ nodeId, addresses }) =>
        create(DuplicatedNodeSchema, { nodeId, addresses: [...addresses] }),
      ),
      uncontainedNodes: [...uncontained],
      unknownResources: unknown.map(({ nodeId, reasons }) =>
        create(UnknownResourcesSchema, { nodeId, reasons: [...reasons] }),
      ),
      agentTrust: trust.map(trustToProto),
    });
  };
}

/**
 * Time limits for reading one part, and for reading the waits, in milliseconds. Their sum is shorter than the method's
 * deadline.
 */
const PART_WITHIN_MS = 6_000;
const WAITS_WITHIN_MS = 3_000;
/** Number of measurements, because a single measurement may include a wait for a connection. */
const ASKED = 3;
/**
 * Duration in milliseconds from which a measurement is not repeated. Waiting for a connection takes this long only if
 * something is slow.
 */
const SLOW_MS = 1_000;

/** The time that the fastest of several trivial queries takes, in milliseconds. */
async function measureLatency({ store, clock }: AdminServices): Promise<number> {
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let time = 0; time < ASKED; time += 1) {
    const askedAtMs = clock.nowMs();
    await storeTimeMs(store.db);
    fastestMs = Math.min(fastestMs, clock.nowMs() - askedAtMs);
    if (fastestMs > SLOW_MS) break;
  }
  return fastestMs;
}

function recordToProto(
  { isStandby, standbys, settings, ...facts }: StoreFacts,
  latencyMs: number,
  waits: readonly StatementWait[],
) {
  return create(StoreFactsSchema, {
    ...facts,
    settings: { ...settings },
    standby: isStandby,
    latency: durationFromMs(Math.round(latencyMs)),
    standbysTold: standbys !== null,
    standbys: (standbys ?? []).map(standbyToProto),
    waits: waits.map(({ longestMs, ...wait }) =>
      create(WaitFactsSchema, { ...wait, longest: durationFromMs(Math.round(longestMs)) }),
    ),
  });
}

function standbyToProto({ name, address, state, sync, behindBytes, behindMs }: Standby) {
  return create(StandbyFactsSchema, {
    ...{ name, address, state, syncState: sync },
    behindBytes: behindBytes === null || behindBytes < 0n ? 0n : behindBytes,
    ...(behindMs === null ? {} : { behind: durationFromMs(Math.round(behindMs)) }),
  });
}

function trustToProto({ trust, nodes, nodeIds }: AgentTrustFacts) {
  return create(AgentTrustSchema, {
    ...(trust === null ? {} : { trust: fromJson(NodeTrustSchema, trust as JsonValue, { ignoreUnknownFields: true }) }),
    nodes,
    nodeIds: [...nodeIds],
  });
}

function processToProto({ instance, service, host, facts, ageMs }: ProcessReport) {
  const { certificateEndsAtMs, natsConnected } = facts;
  return create(ProcessFactsSchema, {
    ...{ instance, service, host, version: facts.version, nodeVersion: facts.nodeVersion },
    clockAhead: durationFromMs(Math.round(facts.clockAheadMs)),
    storeLatency: durationFromMs(Math.round(facts.storeLatencyMs)),
    openFiles: facts.openFiles ?? 0,
    openFilesLimit: BigInt(facts.openFilesLimit ?? 0),
    ...(certificateEndsAtMs === null ? {} : { certificateExpireTime: timestampFromMs(certificateEndsAtMs) }),
    natsConfigured: natsConnected !== null,
    natsConnected: natsConnected === true,
    feedLag: durationFromMs(Math.round(facts.feedLagMs)),
    age: durationFromMs(Math.max(0, Math.round(ageMs))),
    lacksNotifications: facts.lacksNotifications,
    authorities: [...(facts.authorities ?? [])],
    certificateAuthority: facts.certificateAuthority ?? "",
    ...(facts.callsWaitingMs === 0 ? {} : { callsWaiting: durationFromMs(Math.round(facts.callsWaitingMs)) }),
  });
}
