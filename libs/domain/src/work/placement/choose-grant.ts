import type { Grant } from "../execution.ts";
import { fits } from "./amount-rows.ts";
import type { PlacementRequest } from "./placement-request.ts";
import type { PoolNode } from "./pool-node.ts";

/** Whether a node that has enough of all amounts also has the ports and GPUs themselves. */
export function hasPortsAndGpus(node: PoolNode, request: PlacementRequest): boolean {
  return hasPorts(node, request) && chooseGpus(node, request) !== null;
}

/** What an execution is given of a node; null where the node has not got it. */
export function chooseGrant(node: PoolNode, request: PlacementRequest): Grant | null {
  if (!fits(node.free, request.amounts)) return null;
  if (request.plainGrant !== null) return request.plainGrant;
  const ports = choosePorts(node, request);
  const gpuUuids = chooseGpus(node, request);
  if (ports === null || gpuUuids === null) return null;
  const { millicores, memoryBytes, diskBytes } = request.amounts;
  return { millicores, memoryBytes, diskBytes, ports, gpuUuids };
}

function hasPorts({ node, taken }: PoolNode, { staticPorts, dynamicLabels }: PlacementRequest): boolean {
  if (staticPorts.some(([, port]) => taken.ports.has(port))) return false;
  if (dynamicLabels.length === 0) return true;
  const { portMin = 0, portMax = 0 } = node.capacity ?? {};
  if (portMax === 0) return false;
  const wanted = dynamicLabels.length + staticPorts.length;
  if (taken.ports.size + wanted <= portMax - portMin + 1) return true;
  const own = staticPorts.filter(([, port]) => port >= portMin && port <= portMax).length;
  let used = 0;
  for (const port of taken.ports.keys()) if (port >= portMin && port <= portMax) used += 1;
  return portMax - portMin + 1 - used - own >= dynamicLabels.length;
}

function choosePorts(node: PoolNode, request: PlacementRequest): Record<string, number> | null {
  if (!hasPorts(node, request)) return null;
  const chosen: Record<string, number> = Object.fromEntries(request.staticPorts);
  const own = new Set(request.staticPorts.map(([, port]) => port));
  const { portMin = 0, portMax = 0 } = node.node.capacity ?? {};
  let port = node.nextPort;
  for (const label of request.dynamicLabels) {
    do {
      if (port < portMin || port > portMax) port = portMin;
      chosen[label] = port;
      port += 1;
    } while (node.taken.ports.has(port - 1) || own.has(port - 1));
  }
  if (request.dynamicLabels.length > 0) node.nextPort = port;
  return chosen;
}

/** The GPUs that are asked for, or the first that are free and of the model. */
function chooseGpus({ node, taken }: PoolNode, request: PlacementRequest): readonly string[] | null {
  const { gpuModel, gpuIndices } = request.spec.constraints;
  const count = request.amounts.gpus;
  if (count === 0) return [];
  if (!node.areGpusKnown) return null;
  const free = node.gpus.filter(
    ({ uuid, model, index }) =>
      !taken.gpus.has(uuid) &&
      (gpuModel === null || model.includes(gpuModel)) &&
      (gpuIndices.length === 0 || gpuIndices.includes(index)),
  );
  return free.length < count ? null : free.slice(0, count).map(({ uuid }) => uuid);
}
