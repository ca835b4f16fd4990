import { lazy, Suspense, useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { ask } from "../../actions/asked.tsx";
import { VERBS } from "../../actions/verbs.ts";
import { goTo, useSearch, useSetSearch } from "../../app/address.ts";
import { nodePath } from "../../app/link.tsx";
import { usePageKeys } from "../../app/shell-keys.ts";
import { fleet, useComplete, useLook, useSummary } from "../../live/fleet.ts";
import { useSelected } from "../../live/observable.ts";
import { useRights } from "../../session/session.ts";
import { listCommand, type NodeVerb } from "../../state/cli-command.ts";
import { countWords } from "../../state/nodes/count-words.ts";
import { filterFromSearch, isFiltered, NO_FILTER, type NodeFilter, nodeTest } from "../../state/nodes/node-filter.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { isListed } from "../../state/nodes/node-scope.ts";
import { isOrder, type OrderBy } from "../../state/nodes/sorted-view.ts";
import { formatCount } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { PageHead } from "../../ui/panel.tsx";
import { COLUMNS, columnsOf, DEFAULT_COLUMNS } from "./columns.tsx";
import { exportCsv, exportJson } from "./export.ts";
import { FilterBar } from "./filter-bar.tsx";
import { NodesTable } from "./nodes-table.tsx";
import { useLast, useNodesView } from "./use-nodes-view.ts";
import { Views } from "./views.tsx";

const FleetMap = lazy(() => import("./fleet-map.tsx").then((module) => ({ default: module.FleetMap })));
const NONE: ReadonlySet<string> = new Set();
const BULK: readonly NodeVerb[] = ["approve", "reject", "cordon", "uncordon", "drain"];
const MORE_BULK: readonly NodeVerb[] = [
  "undrain",
  "mark-unhealthy",
  "clear-mark",
  "accept-hardware",
  "rotate-key",
  "ban",
  "delete",
];

const showMore = () => fleet.more();
const isAnyOrder = () => true;

/** A valid filter and its test; null while the filter is invalid. */
interface RightFilter {
  readonly filter: NodeFilter;
  readonly test: (row: NodeRow) => boolean;
}

const EVERY_MACHINE: RightFilter = { filter: NO_FILTER, test: ({ type }) => type === "compute" };

/** All nodes, with filters, sorting and bulk verbs. */
export function NodesPage() {
  const search = useSearch();
  const setSearch = useSetSearch();
  const rights = useRights();
  const complete = useComplete();
  // Show typed text immediately, and the matching nodes as soon as they are found.
  const listed = useDeferredValue(search);
  const filter = useMemo(() => filterFromSearch(listed), [listed]);
  const order = useMemo(() => {
    const by: OrderBy = isOrder(listed.sort ?? "") ? (listed.sort as OrderBy) : "id";
    return { by, reversed: listed.desc === "1" };
  }, [listed.sort, listed.desc]);
  const typed = useMemo(() => filterFromSearch(search), [search]);
  const compiled = useMemo(() => nodeTest(filter), [filter]);
  const valid = useMemo(() => (compiled.ok ? { filter, test: compiled.test } : null), [filter, compiled]);
  const right = useLast(valid, EVERY_MACHINE);
  const large = useLook({ filter: right.filter, ...order });
  const by = large && !isListed(order.by) ? "id" : order.by;
  const view = useNodesView(right.test, by, order.reversed);
  const { rows } = view;
  const isMap = search.view === "map";
  const total = useSummary();
  const hasMore = useSelected(fleet.state, (state) => state.hasMore);
  const columns = useMemo(() => columnsOf(listed.show), [listed.show]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [picked, setPicked] = useState(NONE);
  const scroller = useRef<HTMLDivElement>(null);
  const pick = useCallback((ids: readonly string[], on: boolean) => {
    setPicked((before) => {
      const next = new Set(before);
      for (const id of ids) {
        if (on) next.add(id);
        else next.delete(id);
      }
      return next;
    });
  }, []);
  // Nodes that were removed in the meantime, or that the filter hides, are not chosen: only visible nodes are changed.
  const chosen = useMemo(() => {
    const isShown = (row: NodeRow | undefined) => row !== undefined && right.test(row);
    return [...picked].filter((id) => isShown(view.all.get(id)));
  }, [picked, right, view]);
  const chosenIds = useMemo(() => new Set(chosen), [chosen]);
  const keys = useMemo(() => {
    const move = (by: number) =>
      setCursor((before) => {
        const at = rows.findIndex(({ id }) => id === before);
        return rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.id ?? null;
      });
    const current = () => rows.find(({ id }) => id === cursor)?.id;
    const focusSearch = () => document.getElementById("node-search")?.focus();
    return {
      j: { does: "Next node", run: () => move(1) },
      k: { does: "Previous node", run: () => move(-1) },
      Enter: { does: "Open the node", run: () => current() !== undefined && goTo(nodePath(current() ?? "")) },
      "/": { does: "Search", run: focusSearch },
      ...(rights.operate
        ? {
            x: {
              does: "Select the node",
              run: () => pick([current() ?? ""].filter(Boolean), !picked.has(current() ?? "")),
            },
            Escape: { does: "Clear selection", run: () => setPicked(NONE) },
          }
        : {}),
    };
  }, [rows, cursor, rights.operate, picked, pick]);
  usePageKeys(keys);
  const setOrder = useCallback(
    (next: OrderBy) => {
      const reversed = next === order.by && !order.reversed;
      setSearch({ sort: next === "id" ? undefined : next, desc: reversed ? "1" : undefined });
    },
    [order, setSearch],
  );
  const shownOrder = useMemo(() => ({ by, reversed: order.reversed }), [by, order.reversed]);
  const marked = useMemo(() => ({ id: cursor, picked: chosenIds }), [cursor, chosenIds]);
  const toggleColumn = (name: string) => {
    const shown = columns.map((column) => column.name);
    const next = shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name];
    setSearch({ show: next.join(",") });
  };
  const exported = () => (chosen.length > 0 ? chosen.flatMap((id) => fleet.rows.get(id) ?? []) : rows);
  return (
    <>
      <PageHead title="Nodes">
        <Button
          aria-pressed={isMap}
          onClick={() => setSearch({ view: isMap ? undefined : "map", by: isMap ? undefined : search.by })}
        >
          Map
        </Button>
        <Views search={search} />
        <Menu
          items={COLUMNS.slice(1).map(({ name, title }) => ({
            label: title,
            checked: columns.some((column) => column.name === name),
            onSelect: () => toggleColumn(name),
          }))}
        >
          Columns
        </Menu>
        <Menu
          items={[
            { label: "CSV", hint: "columns shown", onSelect: () => exportCsv(exported(), columns) },
            { label: "JSON", hint: "all columns", onSelect: () => exportJson(exported()) },
          ]}
        >
          Export
        </Menu>
        <CopyCommandButton text={listCommand(filter, order)} />
      </PageHead>
      <div className="page-body">
        <FilterBar filter={typed} wrong={compiled.ok ? "" : compiled.message} />
        <div className="nodes">
          {chosen.length > 0 && (
            <div className="bulk" role="toolbar" aria-label="Actions for the selected nodes">
              <strong className="small">{formatCount(chosen.length)} selected</strong>
              {BULK.map((verb) => (
                <Button
                  key={verb}
                  small
                  look={VERBS[verb].danger ? "danger" : undefined}
                  onClick={() => ask(verb, chosen)}
                >
                  {VERBS[verb].label}
                </Button>
              ))}
              <Button small onClick={() => ask("label", chosen)}>
                Label
              </Button>
              <Menu
                look="small"
                items={MORE_BULK.map((verb) => ({
                  label: VERBS[verb].label,
                  danger: VERBS[verb].danger ?? false,
                  onSelect: () => ask(verb, chosen),
                }))}
              >
                More
              </Menu>
              <Button small look="plain" onClick={() => setPicked(NONE)}>
                Clear selection
              </Button>
            </div>
          )}
          {rows.length === 0 && !complete ? (
            <Loading lines={8} />
          ) : rows.length === 0 ? (
            <Empty title={isFiltered(filter) ? "No matching nodes" : "No machine has joined yet"}>
              <p>{isFiltered(filter) ? "Clear a filter to see more." : "Create a join token on the Join page."}</p>
            </Empty>
          ) : isMap ? (
            <Suspense fallback={<Loading lines={8} />}>
              <FleetMap view={view} />
            </Suspense>
          ) : (
            <NodesTable
              view={view}
              columns={columns}
              order={shownOrder}
              canOrder={large ? isListed : isAnyOrder}
              onEnd={showMore}
              cursor={marked}
              canPick={rights.operate}
              onOrder={setOrder}
              onCursor={setCursor}
              onPick={pick}
              scroller={scroller}
            />
          )}
          <div className="nodes-foot">
            <span role="status" data-testid="node-count">
              {countWords({
                shown: rows.length,
                loaded: fleet.rows.size,
                total: total.machines + total.processes,
                machines: total.machines,
                state: hasMore ? (fleet.rows.size < fleet.most ? "paged" : "full") : complete ? "complete" : "loading",
                filter,
              })}
            </span>
            {search.show !== undefined && search.show !== DEFAULT_COLUMNS.join(",") && (
              <Button small look="plain" onClick={() => setSearch({ show: undefined })}>
                Default columns
              </Button>
            )}
          </div>
        </div>
      </div>
    </>
  );
}
