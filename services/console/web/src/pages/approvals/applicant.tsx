import type { ReactNode } from "react";
import { NodeLink, PageLink } from "../../app/link.tsx";
import { registry } from "../../live/clients.ts";
import { useRead } from "../../live/queries.ts";
import { DUPLICATE_PATHS, duplicateFilters, likelyDuplicates } from "../../state/nodes/duplicates.ts";
import { amountText, type NodeRow, toRow } from "../../state/nodes/node-row.ts";
import { formatBytes } from "../../state/units.ts";
import { Notice } from "../../ui/notices.tsx";
import { Facts, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { ExactTime } from "../../ui/time.tsx";

/** A machine that asks to join: its identity, address and hardware, and nodes that may be the same machine. */
export function Applicant({ row, children }: { readonly row: NodeRow; readonly children: ReactNode }) {
  const duplicates = useDuplicates(row);
  const read = useRead(["node", row.id], (signal) => registry.getNode({ node: row.id }, { signal }), {
    on: ["node."],
    subject: row.id,
  });
  const gpus = amountText(row, "gpus", row.gpus);
  const info = read.data?.node?.info;
  const addresses = info?.interfaces.flatMap((one) => one.addresses.map((address) => `${one.name} ${address}`)) ?? [];
  return (
    <Panel title={<NodeLink id={row.id} />} actions={children}>
      <div className="stack">
        {duplicates.length > 0 && (
          <Notice tone="warn">
            It may be a known machine that was reinstalled or cloned:
            {duplicates.map(({ id, why }) => (
              <div key={id}>
                <NodeLink id={id} />: {why}
              </div>
            ))}
          </Notice>
        )}
        {row.joinedWithoutToken && <Notice tone="warn">It registered without a join token.</Notice>}
        <Facts
          of={[
            ["Waiting since", <ExactTime key="since" ms={row.membership.sinceMs} />],
            ["From", row.joinedFrom || "not recorded"],
            ["Connection", <StateMark key="connection" word={row.connection.word} />],
            ["Host name", row.hostname],
            ["Addresses", addresses.join(", ")],
            ["Hardware addresses", row.macs.join(", ")],
            ["Processor", [row.cpuModel, row.cores === 0 ? "" : `${row.cores} threads`].filter(Boolean).join(", ")],
            ["Memory", amountText(row, "memory", row.memoryBytes, formatBytes)],
            ["Disk", amountText(row, "disk", row.diskBytes, formatBytes)],
            ["GPUs", row.gpus === 0 ? gpus || "none" : `${gpus} x ${row.gpuModels}`],
            ["System", `${row.os} ${row.architecture}`],
            ["Agent", row.version],
            ["Labels", row.labelsText],
            ["Key", <code key="key">{row.keyFingerprint}</code>],
            [
              "Join token",
              row.joinTokenId === "" ? (
                "none"
              ) : (
                <PageLink key="token" to={`/join?token=${encodeURIComponent(row.joinTokenId)}`}>
                  {row.joinTokenId}
                </PageLink>
              ),
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

/** The nodes of the whole fleet that may be the same machine; the server searches for them. */
function useDuplicates(row: NodeRow) {
  const { data = [] } = useRead(["duplicates", row.id, row.hostname, row.macs], async (signal) => {
    const readMask = { paths: [...DUPLICATE_PATHS] };
    const lists = duplicateFilters(row).map((filter) =>
      registry.listNodes({ ...filter, pageSize: MOST_DUPLICATES + 1, readMask }, { signal }),
    );
    const found = (await Promise.all(lists)).flatMap(({ nodes }) => nodes.map(toRow));
    return likelyDuplicates(row, found, MOST_DUPLICATES);
  });
  return data;
}

/** Maximum number of duplicates shown. One more is requested, because the results include the machine itself. */
const MOST_DUPLICATES = 3;
