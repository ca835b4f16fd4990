import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetClusterSummaryResponseSchema,
  GetControlPlaneStatusResponseSchema,
  JoinTokenEnforcement,
  type RegistryService,
  UpkeepOutcome,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { noteRevision } from "@rollcall/rpc";
import {
  clusterSummary,
  compactedRevision,
  countLabels,
  joinedWithoutToken,
  listUpkeepRuns,
  readRelay,
  type StateCount,
  type UpkeepRun,
} from "@rollcall/store";
import { healthStateToProto, holdKindToProto, membershipStateToProto, schedulingStateToProto } from "@rollcall/wire";
import type { RegistryServices } from "../registry-services.ts";

/** Return the fleet in numbers. */
export function getClusterSummary({
  store,
}: RegistryServices): MethodImpl<typeof RegistryService.method.getClusterSummary> {
  return async ({ includeLabels }) => {
    const { states, holds, ...summary } = await clusterSummary(store.db);
    const labels = includeLabels ? await countLabels(store.db) : [];
    return create(GetClusterSummaryResponseSchema, {
      clusterId: store.clusterId(),
      ...summary,
      states: states.map(stateCountToProto),
      labels: [...labels],
      holds: holds.map(({ kind, count }) => ({ kind: holdKindToProto(kind), count })),
    });
  };
}

function stateCountToProto({ membership, health, scheduling, count }: StateCount) {
  return {
    membership: membershipStateToProto(membership),
    health: healthStateToProto(health),
    scheduling: schedulingStateToProto(scheduling),
    count,
  };
}

/** Return the state of the event log, its relay and upkeep. */
export function getControlPlaneStatus({
  store,
  outward,
  config,
  warnings = [],
}: RegistryServices): MethodImpl<typeof RegistryService.method.getControlPlaneStatus> {
  return async (_request, context) => {
    const [relay, compacted, runs, without] = await Promise.all([
      readRelay(store.db),
      compactedRevision(store.db),
      listUpkeepRuns(store.db),
      joinedWithoutToken(store.db, MOST_NAMED),
    ]);
    noteRevision(context, relay.head);
    return create(GetControlPlaneStatusResponseSchema, {
      clusterId: store.clusterId(),
      log: { logId: store.logId(), headRevision: relay.head, compactedRevision: compacted },
      relay: {
        configured: outward != null,
        instance: relay.holder ?? "",
        revision: relay.revision,
        lag: relay.head - relay.revision,
        saveTime: timestampFromMs(relay.savedAtMs),
        ...(relay.waitingMs === 0 ? {} : { waiting: durationFromMs(Math.round(relay.waitingMs)) }),
      },
      upkeep: runs.map(toProto),
      joining: {
        manualApproval: config["Orchestrator.NodeManager.ManualApproval"],
        enforcement: ENFORCEMENTS[config["Orchestrator.NodeManager.JoinTokens"]],
        joinedWithoutToken: without.count,
        joinedWithoutTokenIds: [...without.ids],
        warnings: [...warnings],
      },
    });
  };
}

const MOST_NAMED = 20;

const ENFORCEMENTS = {
  none: JoinTokenEnforcement.NONE,
  warn: JoinTokenEnforcement.WARN,
  strict: JoinTokenEnforcement.STRICT,
} as const;

function toProto({ name, instance, startedAtMs, endedAtMs, outcome, rows, ...run }: UpkeepRun) {
  return {
    ...{ name, instance, rows, message: run.message, runs: run.runs },
    startTime: timestampFromMs(startedAtMs),
    ...(endedAtMs === null ? {} : { endTime: timestampFromMs(endedAtMs) }),
    outcome: UpkeepOutcome[outcome],
  };
}
