import { create } from "@bufbuild/protobuf";
import { type HealthTotals, HealthTotalsSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { NodeTemperature } from "@rollcall/api/rollcall/health/v1/health_query_pb";

/** The sums over two disjoint sets of nodes. */
export function addTotals(left: HealthTotals, right: HealthTotals): HealthTotals {
  const hottestAverage = hotter(left.hottestAverage, right.hottestAverage);
  const hottestSensor = hotter(left.hottestSensor, right.hottestSensor);
  return create(HealthTotalsSchema, {
    healthy: left.healthy + right.healthy,
    unhealthy: left.unhealthy + right.unhealthy,
    unknown: left.unknown + right.unknown,
    reporting: left.reporting + right.reporting,
    cpuPercentCores: left.cpuPercentCores + right.cpuPercentCores,
    cores: left.cores + right.cores,
    memoryUsedMib: left.memoryUsedMib + right.memoryUsedMib,
    memoryTotalMib: left.memoryTotalMib + right.memoryTotalMib,
    gpus: left.gpus + right.gpus,
    gpusBusy: left.gpusBusy + right.gpusBusy,
    ...(hottestAverage === undefined ? {} : { hottestAverage }),
    ...(hottestSensor === undefined ? {} : { hottestSensor }),
  });
}

/** Of two equally hot nodes the first by id, so that the result does not depend on which replica was asked. */
function hotter(left: NodeTemperature | undefined, right: NodeTemperature | undefined): NodeTemperature | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  if (left.celsius !== right.celsius) return left.celsius > right.celsius ? left : right;
  return left.nodeId < right.nodeId ? left : right;
}
