import type { WorkShell } from "@rollcall/domain";

export function createShell(): WorkShell {
  const nothing = () => {};
  return {
    applyNode: nothing,
    removeNode: nothing,
    applyJob: nothing,
    removeJob: nothing,
    applyExecution: nothing,
    applyObservation: nothing,
    applyDrain: nothing,
    removeDrain: nothing,
    plan: () => ({ executions: [], jobs: [], drains: [], wakeAtMs: null, more: false }),
    revert: nothing,
  };
}
