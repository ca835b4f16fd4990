import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { amountText, toMs } from "../../state/nodes/node-row.ts";
import { formatBytes, formatMillicores } from "../../state/units.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty, Loading, Notice } from "../../ui/notices.tsx";
import { Facts, Panel } from "../../ui/panel.tsx";
import { ExactTime } from "../../ui/time.tsx";

/** The hardware and software that a node reports. */
export function HardwareTab({ node }: { readonly node: Node | undefined }) {
  if (node === undefined) return <Loading />;
  const { info } = node;
  if (info?.cpu === undefined) return <Empty title="A control-plane process reports no hardware" />;
  const row = { unknownFacts: info.unknownFacts.map(({ fact }) => fact) };
  return (
    <div className="stack">
      {info.unknownFacts.map(({ fact, reason, knownTime }) => (
        <Notice key={`${fact} ${reason}`} tone="warn">
          <code>{fact}</code> cannot be determined: {reason}.{" "}
          {knownTime === undefined ? "No earlier value is known." : "Showing the last known value, from "}
          {knownTime !== undefined && <ExactTime ms={toMs(knownTime)} />}
        </Notice>
      ))}
      <div className="grid">
        <Panel title="Machine">
          <Facts
            of={[
              ["Host name", info.hostname],
              ["Address", info.advertiseUrl],
              ["Agent", info.agentVersion],
              ["System", info.os?.name],
              ["Kernel", info.os?.kernel],
              ["Architecture", info.os?.architecture],
              ["Processor", info.cpu.model],
              ["Sockets, cores, threads", `${info.cpu.sockets}, ${info.cpu.cores}, ${info.cpu.threads}`],
              [
                "Usable",
                info.cpu.usableMillis === undefined
                  ? "unknown"
                  : `${formatMillicores(info.cpu.usableMillis)} processors`,
              ],
              ["Memory", amountText(row, "memory", Number(info.memoryBytes ?? 0n), formatBytes)],
              ["Disk", amountText(row, "disk", Number(info.diskBytes ?? 0n), formatBytes)],
              [
                "Virtual machines",
                info.vm?.capable ? `yes${info.vm.nested ? ", nested" : ""}` : (info.vm?.message ?? "no"),
              ],
            ]}
          />
        </Panel>
        <Panel title="Network" flush>
          <DataTable
            label="Network interfaces"
            rows={info.interfaces}
            keyOf={({ name }) => name}
            columns={[
              { title: "Name", cell: ({ name }) => name },
              {
                title: "Addresses",
                cell: ({ addresses }) => <span className="breaks">{addresses.join(", ") || "-"}</span>,
              },
              { title: "Hardware address", cell: ({ mac }) => <code>{mac}</code> },
              { title: "Mbit/s", right: true, cell: ({ speedMbps }) => speedMbps || "-" },
            ]}
          />
        </Panel>
      </div>
      {info.gpus.length > 0 && (
        <Panel title="GPUs" flush>
          <DataTable
            label="GPUs"
            rows={info.gpus}
            keyOf={({ index }) => String(index)}
            columns={[
              { title: "Index", cell: ({ index }) => index },
              { title: "Model", cell: ({ name, vendor }) => `${name} (${vendor})` },
              { title: "Memory", right: true, cell: ({ memoryMib }) => formatBytes(memoryMib * 1024 * 1024) },
              { title: "PCI", cell: ({ pciAddress }) => <code>{pciAddress}</code> },
              { title: "Driver", cell: ({ driverVersion }) => driverVersion },
              { title: "UUID", cell: ({ uuid }) => <code className="breaks">{uuid || "-"}</code> },
              { title: "Unusable", cell: ({ unusable }) => unusable },
            ]}
          />
        </Panel>
      )}
      {info.numaNodes.length > 0 && (
        <Panel title="NUMA nodes" flush>
          <DataTable
            label="NUMA nodes"
            rows={info.numaNodes}
            keyOf={({ id }) => String(id)}
            columns={[
              { title: "Id", cell: ({ id }) => id },
              { title: "Processors", cell: ({ cpus }) => <code className="breaks">{cpus}</code> },
              {
                title: "Memory",
                right: true,
                cell: ({ memoryBytes }) => (memoryBytes === undefined ? "unknown" : formatBytes(Number(memoryBytes))),
              },
              { title: "Distances", cell: ({ distances }) => distances.join(", ") },
            ]}
          />
        </Panel>
      )}
      {info.vfioGpus.length > 0 && (
        <Panel title="GPUs reserved for virtual machines" flush>
          <DataTable
            label="GPUs reserved for virtual machines"
            rows={info.vfioGpus}
            keyOf={({ pciAddress }) => pciAddress}
            columns={[
              { title: "PCI", cell: ({ pciAddress }) => <code>{pciAddress}</code> },
              {
                title: "Vendor and device",
                cell: ({ vendorId, deviceId }) => <code>{`${vendorId}:${deviceId}`}</code>,
              },
              { title: "IOMMU group", right: true, cell: ({ iommuGroup }) => iommuGroup },
            ]}
          />
        </Panel>
      )}
    </div>
  );
}
