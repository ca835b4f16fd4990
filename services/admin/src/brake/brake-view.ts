import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Brake, BrakeSchema, BrakeState as ProtoState } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import {
  addBrakeSums,
  BRAKE_CLUSTER,
  BRAKE_WINDOW_MS,
  type BrakeMarks,
  type BrakeReading,
  type BrakeRow,
  type BrakeSetting,
  type BrakeState,
  countedSize,
  type GroupLosses,
  type GroupSum,
  type ReleaseRate,
  releaseRate,
  toldCounts,
} from "@rollcall/domain";
import { type Db, listBrakes, lossBefore, readBrake } from "@rollcall/store";

/** A loss so long ago is among no replica's sums any more: each of them has reported twice since. */
const SETTLED_MS = 5_000;

/** Every brake as the record shows it: the cluster's first, then groups by name. */
export async function readBrakes(db: Db): Promise<readonly Brake[]> {
  const reading = await readBrake(db, await readMarks(db));
  const totals = addBrakeSums([...reading.reports.values()]);
  const rows = new Map(reading.rows.map((row) => [row.group, row]));
  const clusterRow = rows.get(BRAKE_CLUSTER) ?? null;
  return groupsOf(reading, totals).map((group) => {
    const row = rows.get(group) ?? null;
    const { healthy, silent } = totals.get(group) ?? { healthy: 0, silent: 0 };
    const losses = lossesOf(group, reading.losses);
    const counted = countedSize({ healthy, silent }, losses);
    const size = row === null || row.mode === "NORMAL" ? counted : Math.max(row.size, counted);
    const counts = toldCounts({ ...losses, size, silent: Math.min(silent, healthy) });
    const cluster = group === BRAKE_CLUSTER ? null : settingOf(clusterRow);
    const rate = releaseRate(settingOf(row), cluster);
    return toProto(group, row, { ...counts, pending: losses.pending, rate });
  });
}

/** What the brake of a group is, with an operator's freeze, and the size that its pace goes by. */
function settingOf(row: Pick<BrakeRow, "mode" | "frozen" | "size"> | null): BrakeSetting {
  if (row === null) return { state: "NORMAL", size: 0 };
  return { state: row.frozen === null ? row.mode : "FROZEN", size: row.size };
}

/** The losses of the last minute count, or those of a storm since it began. */
async function readMarks(db: Db): Promise<BrakeMarks> {
  const window = await lossBefore(db, BRAKE_WINDOW_MS);
  const settled = await lossBefore(db, SETTLED_MS);
  const rows = await listBrakes(db);
  const own = rows.filter(({ mode, windowLoss }) => mode !== "NORMAL" || windowLoss > window);
  return {
    settled,
    window,
    windows: new Map(own.map(({ group, windowLoss }) => [group, windowLoss])),
  };
}

function groupsOf({ losses, rows }: BrakeReading, totals: ReadonlyMap<string, GroupSum>): readonly string[] {
  const names = [...totals.keys(), ...losses, ...rows].map((it) => (typeof it === "string" ? it : it.group));
  const groups = new Set(names.filter((name) => name !== "" && name !== BRAKE_CLUSTER));
  return [BRAKE_CLUSTER, ...[...groups].sort()];
}

type Losses = Pick<GroupLosses, "lost" | "unsettled" | "pending">;

function lossesOf(group: string, losses: readonly GroupLosses[]): Losses {
  const none: Losses = { lost: 0, unsettled: 0, pending: 0 };
  if (group !== BRAKE_CLUSTER) return losses.find((it) => it.group === group) ?? none;
  return losses.reduce(
    (sum, { lostOfCluster, unsettled, pending }) => ({
      lost: sum.lost + lostOfCluster,
      unsettled: sum.unsettled + unsettled,
      pending: sum.pending + pending,
    }),
    none,
  );
}

interface Shown {
  readonly size: number;
  readonly silent: number;
  readonly lost: number;
  readonly pending: number;
  readonly rate: ReleaseRate | null;
}

function toProto(group: string, row: BrakeRow | null, { rate, ...counts }: Shown): Brake {
  const { mode = "NORMAL", frozen = null } = row ?? {};
  const sinceMs = frozen?.sinceMs ?? row?.sinceMs;
  const isReleasing = rate !== null && rate.perMinute > 0;
  return create(BrakeSchema, {
    group,
    state: STATES[settingOf(row).state],
    automaticState: STATES[mode],
    ...(sinceMs === undefined ? {} : { since: timestampFromMs(sinceMs) }),
    ...counts,
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
