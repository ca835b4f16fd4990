import { type Node, type NodeTrust, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ask } from "../../actions/asked.tsx";
import { PageLink } from "../../app/link.tsx";
import { useRights } from "../../session/session.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { trustWord } from "../../state/trust-words.ts";
import { holdWord, tierWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { Facts, Panel } from "../../ui/panel.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";

/** The labels with their sources, the key, and how the node joined. */
export function IdentityTab({ id, node }: { readonly id: string; readonly node: Node | undefined }) {
  const rights = useRights();
  if (node === undefined) return <Loading />;
  const holds = node.scheduling?.holds ?? [];
  return (
    <div className="stack">
      <Panel
        title="Labels"
        flush
        actions={
          rights.operate && node.info !== undefined ? (
            <Button small onClick={() => ask("label", [id])}>
              Change labels
            </Button>
          ) : undefined
        }
      >
        {node.labels.length === 0 ? (
          <Empty title="No labels" />
        ) : (
          <DataTable
            label="Labels"
            rows={node.labels}
            keyOf={({ key }) => key}
            columns={[
              { title: "Key", cell: ({ key }) => <code className="breaks">{key}</code> },
              { title: "Value", cell: ({ value }) => <code className="breaks">{value}</code> },
              { title: "Set by", cell: ({ tier }) => tierWord(tier) },
              {
                title: "Overrides",
                cell: ({ overrides }) =>
                  overrides.map(({ tier, value }) => `${value} (${tierWord(tier)})`).join(", ") || "-",
              },
            ]}
          />
        )}
      </Panel>
      {holds.length > 0 && (
        <Panel title="Holds on new work" flush>
          <DataTable
            label="Holds"
            rows={holds}
            keyOf={({ kind }) => String(kind)}
            columns={[
              { title: "Kind", cell: ({ kind }) => holdWord(kind) },
              { title: "Since", cell: ({ since }) => <Time ms={toMs(since)} /> },
              { title: "Until", cell: ({ untilTime }) => <Time ms={toMs(untilTime)} /> },
              { title: "Why", cell: ({ message }) => <span className="breaks">{message}</span> },
              { title: "By", cell: ({ actor }) => actor },
            ]}
          />
        </Panel>
      )}
      <Panel title="Identity">
        <Facts
          of={[
            ["Key", node.keyFingerprint === "" ? "" : <code key="key">{node.keyFingerprint}</code>],
            ["Key since", node.keySince === undefined ? "" : <ExactTime key="since" ms={toMs(node.keySince)} />],
            ["Next key", node.nextKeyFingerprint],
            [
              "Rotation required since",
              node.keyRotationRequiredSince === undefined ? (
                ""
              ) : (
                <ExactTime key="wanted" ms={toMs(node.keyRotationRequiredSince)} />
              ),
            ],
            ["Joined", <ExactTime key="joined" ms={toMs(node.createTime)} />],
            ["Joined from", node.joinedFrom],
            ["Changed", <ExactTime key="changed" ms={toMs(node.updateTime)} />],
            [
              "Join token",
              node.joinTokenId === "" ? (
                ""
              ) : (
                <PageLink key="token" to={`/join?token=${encodeURIComponent(node.joinTokenId)}`}>
                  {node.joinTokenId}
                </PageLink>
              ),
            ],
            ["Joined without a token", node.joinedWithoutToken ? "yes, allowed with a warning" : ""],
            ["Removed when it leaves", node.ephemeral ? "yes" : ""],
          ]}
        />
      </Panel>
      {node.type === NodeType.COMPUTE && <TrustPanel trust={node.info?.trust} />}
    </div>
  );
}

/**
 * How the agent recognizes the control plane. Before operators change the authority, they check this for each
 * node, to see which nodes would be lost.
 */
function TrustPanel({ trust }: { readonly trust: NodeTrust | undefined }) {
  const authorities = trust?.authorities ?? [];
  return (
    <Panel title="Trust in the control plane">
      <Facts
        of={[
          ["Trusts", trustWord(trust)],
          [
            "Authorities",
            authorities.length === 0 ? (
              ""
            ) : (
              <span key="authorities" className="stack">
                {authorities.map((it) => (
                  <code key={it} className="breaks">
                    {it}
                  </code>
                ))}
              </span>
            ),
          ],
          ["Expected server name", trust?.serverName],
        ]}
      />
    </Panel>
  );
}
