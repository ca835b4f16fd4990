import { type AuditEntry, AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { stateWords } from "@rollcall/domain";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { clientOf } from "../../live/clients.ts";
import { EVERY_EVENT, RARE_MS, useEvents } from "../../live/queries.ts";
import { useTokenNames } from "../../live/token-names.ts";
import { command } from "../../state/cli-command.ts";
import { actorName } from "../../state/events/event-groups.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { isoTime } from "../../state/time-words.ts";
import { methodWords } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Field } from "../../ui/field.tsx";
import { Empty, Notice, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { sayFailure } from "../../ui/toasts.tsx";

const audit = clientOf(AuditService);
const FILTERS = ["actor", "method", "target", "outcome"] as const;

/** What each caller did, and which of its calls were refused. */
export function AuditPage() {
  const search = useSearch();
  const setSearch = useSetSearch();
  const names = useTokenNames();
  const [checked, setChecked] = useState<{ readonly ok: boolean; readonly text: string } | null>(null);
  const filter = Object.fromEntries(FILTERS.map((name) => [name, search[name] ?? ""])) as Record<
    (typeof FILTERS)[number],
    string
  >;
  const list = useInfiniteQuery({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam, signal }) =>
      audit.listAuditEntries({ ...filter, pageSize: 100, pageToken: pageParam }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    retry: false,
    staleTime: 0,
  });
  // Events trigger a refetch only while the list has one page. Further pages are not refetched.
  const isOnePage = (list.data?.pages.length ?? 0) <= 1;
  useEvents({ on: EVERY_EVENT, gatherMs: RARE_MS }, () => (isOnePage ? list.refetch() : null));
  const entries = list.data?.pages.flatMap((page) => page.entries) ?? [];
  const words = FILTERS.flatMap((name) => (filter[name] === "" ? [] : [`--${name}`, filter[name]]));
  const verify = async () => {
    try {
      let after: { sequence: bigint; hash: string } | undefined;
      for (;;) {
        const found = await audit.verifyAuditLog(after === undefined ? {} : { after });
        if (found.problem !== undefined) return setChecked({ ok: false, text: found.problem.message });
        if (found.complete || found.through === undefined) {
          return setChecked({
            ok: true,
            text: `Intact up to entry ${found.head?.sequence ?? 0n}, hash ${found.head?.hash ?? ""}`,
          });
        }
        after = { sequence: found.through.sequence, hash: found.through.hash };
      }
    } catch (cause) {
      sayFailure("Verify", cause);
    }
  };
  return (
    <>
      <PageHead title="Audit">
        <Button onClick={verify}>Verify the chain</Button>
        <ExportMenu name="audit" of={() => entries.map(valuesOf)} />
        <CopyCommandButton text={command("audit", "list", ...words)} />
      </PageHead>
      <div className="page-body">
        <search className="filters">
          {FILTERS.map((name) => (
            <Field
              key={name}
              label={name.charAt(0).toUpperCase() + name.slice(1)}
              placeholder={{ actor: "token:ID", method: "ApproveNode", target: "node id", outcome: "OK" }[name]}
              defaultValue={filter[name]}
              onChange={(event) => setSearch({ [name]: event.target.value.trim() })}
            />
          ))}
        </search>
        {checked !== null && (
          <Notice tone={checked.ok ? "good" : "bad"}>
            <span className="breaks">{checked.text}</span>
          </Notice>
        )}
        <Panel
          title="Entries"
          flush
          actions={
            <Button small onClick={() => list.refetch()}>
              Refresh
            </Button>
          }
        >
          <Read from={list}>
            {() =>
              entries.length === 0 ? (
                <Empty title="No matching entries" />
              ) : (
                <DataTable
                  label="Audit entries"
                  rows={entries}
                  keyOf={({ sequence }) => String(sequence)}
                  columns={[
                    { title: "Entry", right: true, cell: ({ sequence }) => String(sequence) },
                    { title: "When", cell: ({ time }) => <Time ms={toMs(time)} /> },
                    {
                      title: "Who",
                      cell: ({ actor }) => (
                        <span className="breaks" title={actor}>
                          {actorName(actor, names)}
                        </span>
                      ),
                    },
                    { title: "Method", cell: ({ method }) => <span title={method}>{methodWords(method)}</span> },
                    { title: "Target", cell: ({ target }) => <span className="breaks">{target || "-"}</span> },
                    {
                      title: "Outcome",
                      cell: ({ outcome }) => <StateMark word={outcome === "OK" ? "OK" : "REFUSED"} title={outcome} />,
                    },
                    {
                      title: "Reason",
                      cell: ({ reason, outcome }) => (
                        <span className="breaks" title={outcome}>
                          {reason || (outcome === "OK" ? "-" : stateWords(outcome))}
                        </span>
                      ),
                    },
                    { title: "From", cell: ({ address }) => <From address={address} /> },
                  ]}
                />
              )
            }
          </Read>
          {list.hasNextPage && (
            <div className="empty">
              <Button onClick={() => list.fetchNextPage()} disabled={list.isFetchingNextPage}>
                Earlier entries
              </Button>
            </div>
          )}
        </Panel>
      </div>
    </>
  );
}

function valuesOf({ sequence, time, hash, ...entry }: AuditEntry) {
  const { actor, method, target, reason, outcome, address, requestId } = entry;
  const at = isoTime(toMs(time));
  return { sequence: String(sequence), time: at, actor, method, target, reason, outcome, address, requestId, hash };
}

/** Where a call came from, and its console session if it has one. */
function From({ address }: { readonly address: string }) {
  const [place, session] = address.split(" ");
  return (
    <>
      <code>{place}</code>
      {session !== undefined && (
        <div className="soft small">
          session <code>{session}</code>
        </div>
      )}
    </>
  );
}
