import type { Grant } from "../execution.ts";
import { fits } from "./amount-rows.ts";
import type { PlacementRequest } from "./placement-request.ts";
import type { PoolNode } from "./pool-node.ts";

/** Whether a node has the requested ports and GPUs. The caller has checked the amounts. */
export function hasPortsAndGpus(node: PoolNode, request: PlacementRequest): boolean {
  return hasPorts(node, request) && chooseGpus(node, request) !== null;
}

/** Choose what to grant to an execution on a node; null if the node does not have everything. */
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
  let port = node.nextPort;
  for (const label of request.dynamicLabels) {
    const free = findPort(node, port, own);
    if (free === null) return null;
    chosen[label] = free;
    port = free + 1;
  }
  if (request.dynamicLabels.length > 0) node.nextPort = port;
  return chosen;
}

/** Find a free port, starting at `first` and trying each port of the node's range once; null if none is free. */
function findPort({ node, taken }: PoolNode, first: number, own: ReadonlySet<number>): number | null {
  const { portMin = 0, portMax = 0 } = node.capacity ?? {};
  let port = first;
  for (let tried = portMin; tried <= portMax; tried += 1) {
    if (port < portMin || port > portMax) port = portMin;
    if (!taken.ports.has(port) && !own.has(port)) return port;
    port += 1;
  }
  return null;
}

/** Choose free GPUs with the requested indices and model; null if there are too few. */
function chooseGpus({ node, taken }: PoolNode, request: PlacementRequest): readonly string[] | null {
  const { gpuModel, gpuIndices } = request.spec.constraints;
  const count = request.amounts.gpus;
  if (count === 0) return [];
  if (node.unknown.includes("gpus")) return null;
  const free = node.gpus.filter(
    ({ uuid, model, index }) =>
      !taken.gpus.has(uuid) &&
      (gpuModel === null || model.includes(gpuModel)) &&
      (gpuIndices.length === 0 || gpuIndices.includes(index)),
  );
  return free.length < count ? null : free.slice(0, count).map(({ uuid }) => uuid);
}
