import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Brake, BrakeSchema, BrakeState as ProtoState } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { BrakeState, ShownBrake } from "@rollcall/domain";
import { type Db, readShownBrakes } from "@rollcall/store";

/** Read all brakes: the cluster's first, then groups by name. */
export async function readBrakes(db: Db): Promise<readonly Brake[]> {
  return (await readShownBrakes(db)).map(toProto);
}

function toProto({ group, row, state, counts, pending, rate }: ShownBrake): Brake {
  const { mode = "NORMAL", frozen = null } = row ?? {};
  const sinceMs = frozen?.sinceMs ?? row?.sinceMs;
  const isReleasing = rate !== null && rate.perMinute > 0;
  return create(BrakeSchema, {
    group,
    state: STATES[state],
    automaticState: STATES[mode],
    ...(sinceMs === undefined ? {} : { since: timestampFromMs(sinceMs) }),
    ...counts,
    pending,
    releasedPerMinute: rate?.perMinute ?? 0,
    ...(isReleasing ? { releaseInterval: durationFromMs(Math.round(rate.intervalMs)) } : {}),
    limitedByCluster: rate?.isByCluster ?? false,
    frozenBy: frozen?.actor ?? "",
    frozenReason: frozen?.reason ?? "",
  });
}

const STATES: Readonly<Record<BrakeState, ProtoState>> = {
  NORMAL: ProtoState.NORMAL,
  PARTIAL: ProtoState.PARTIAL,
  FULL: ProtoState.FULL,
  FROZEN: ProtoState.FROZEN,
};
