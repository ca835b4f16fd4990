import * as Radix from "@radix-ui/react-dialog";
import { type KeyboardEvent, useEffect, useId, useMemo, useState } from "react";
import { ask } from "../actions/asked.tsx";
import { VERBS } from "../actions/verbs.ts";
import { registry } from "../live/clients.ts";
import { fleet, useLarge } from "../live/fleet.ts";
import { useObservable } from "../live/observable.ts";
import { useRead } from "../live/queries.ts";
import { useRights } from "../session/session.ts";
import { signOut, signOutEverywhere } from "../session/sign-out.ts";
import type { NodeVerb } from "../state/cli-command.ts";
import { type NodeRow, ROW_PATHS, toRow } from "../state/nodes/node-row.ts";
import { toSearch } from "../state/nodes/node-scope.ts";
import { type Findable, find } from "../state/search.ts";
import { decodedPart } from "../state/words.ts";
import { goTo } from "./address.ts";
import { nodePath } from "./link.tsx";
import { NAV_PAGES } from "./pages.ts";
import { pageKeys, palette } from "./shell-keys.ts";
import { nextTheme } from "./theme.ts";

interface Command extends Findable {
  readonly run: () => void;
}

const MOST = 14;
/** How long typing must pause before the server is asked. */
const REST_MS = 250;

/** Searches pages, nodes and their verbs, or lists the shortcuts. */
export function Palette({ mode }: { readonly mode: "commands" | "keys" }) {
  const close = () => palette.set(null);
  return (
    <Radix.Root open onOpenChange={(open) => open || close()}>
      <Radix.Portal>
        <Radix.Overlay className="veil" />
        <Radix.Content className="dialog stack tight" aria-describedby={undefined}>
          <Radix.Title>{mode === "keys" ? "Keyboard shortcuts" : "Search and commands"}</Radix.Title>
          {mode === "keys" ? <KeyList /> : <Commands onClose={close} />}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Commands({ onClose }: { readonly onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const commands = useCommands();
  const beyond = useSearchedNodes(query);
  const found = useMemo(() => find(allOf(commands, beyond), query, MOST), [commands, beyond, query]);
  const chosen = Math.min(at, found.length - 1);
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        className="input"
        role="combobox"
        aria-label="Page, node or command"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={`${list}-${chosen}`}
        placeholder="Page, node or command"
        value={query}
        onKeyDown={press}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
      />
      <div role="listbox" id={list} aria-label="Results">
        {found.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field above handles keys, as in any combobox.
          <div
            key={`${command.title} ${command.about}`}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className="menu-item"
            onClick={() => run(command)}
          >
            <span className="title cut">{command.title}</span>
            <span className="soft small cut">{command.about}</span>
          </div>
        ))}
        {found.length === 0 && <p className="soft small">No match.</p>}
      </div>
    </>
  );
}

function useCommands(): readonly Command[] {
  const rights = useRights();
  return useMemo(() => {
    const pages = NAV_PAGES.filter(({ needs }) => needs === undefined || rights[needs]).map((page) => ({
      title: page.title,
      about: page.about,
      run: () => goTo(page.path),
    }));
    const id = decodedPart(/^\/nodes\/([^/]+)$/.exec(window.location.pathname)?.[1] ?? "");
    const row = fleet.rows.get(id);
    const verbs = Object.entries(VERBS) as readonly (readonly [NodeVerb, (typeof VERBS)[NodeVerb]])[];
    const actions =
      row === undefined || !rights.operate
        ? []
        : verbs
            .filter(([, { fits }]) => fits(row))
            .map(([verb, { label }]) => ({ title: `${label} ${id}`, about: "this node", run: () => ask(verb, [id]) }));
    return [
      ...actions,
      ...pages,
      { title: "Sign out", about: "in this browser only", run: () => signOut() },
      { title: "Sign out everywhere", about: "end all of your sessions", run: () => signOutEverywhere() },
      { title: "Change the theme", about: "light, dark or system", run: nextTheme },
      { title: "Keyboard shortcuts", about: "?", run: () => palette.set("keys") },
    ];
  }, [rights]);
}

/** The nodes that the server finds, for fleets that are too large to load completely. */
function useSearchedNodes(query: string): readonly NodeRow[] {
  const large = useLarge();
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(query.trim()), REST_MS);
    return () => window.clearTimeout(timer);
  }, [query]);
  const request = { search: toSearch(asked), pageSize: MOST, readMask: { paths: [...ROW_PATHS] } };
  const found = useRead(["search", asked], (signal) => registry.listNodes(request, { signal }), {
    enabled: large && asked !== "",
  });
  return useMemo(() => (found.data?.nodes ?? []).map(toRow), [found.data]);
}

/** The commands first, then all loaded nodes, or for a large fleet those that the server found. */
function* allOf(commands: readonly Command[], beyond: readonly NodeRow[]): Generator<Command> {
  yield* commands;
  for (const row of fleet.state.value.large ? beyond : fleet.rows.values()) {
    yield {
      title: row.id,
      about: `${row.hostname} ${row.status.toLowerCase()} ${row.labelsText}`,
      run: () => goTo(nodePath(row.id)),
    };
  }
}

function KeyList() {
  const { keys } = useObservable(pageKeys);
  const rights = useRights();
  const pages = NAV_PAGES.filter(({ needs }) => needs === undefined || rights[needs]);
  return (
    <div className="grid">
      <dl className="facts">
        <dt>
          <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Search and commands</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This list</dd>
        {rights.operate && (
          <>
            <dt>
              <kbd>z</kbd>
            </dt>
            <dd>Undo the last decision</dd>
          </>
        )}
        {keys.map(({ key, does }) => (
          <div key={key} style={{ display: "contents" }}>
            <dt>
              <kbd>{key === " " ? "Space" : key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <dl className="facts">
        {pages.map((page) => (
          <div key={page.path} style={{ display: "contents" }}>
            <dt>
              <kbd>g</kbd> <kbd>{page.key}</kbd>
            </dt>
            <dd>{page.title}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
