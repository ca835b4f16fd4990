import { type KeyboardEvent, useId, useMemo, useState, useSyncExternalStore } from "react";
import { history, useSetSearch } from "../../app/address.ts";
import { registry } from "../../live/clients.ts";
import { fleet, useComplete, useLarge } from "../../live/fleet.ts";
import { useRead } from "../../live/queries.ts";
import {
  filterToSearch,
  isFiltered,
  NO_FILTER,
  type NodeFilter,
  STATE_CHOICES,
  STATE_FIELDS,
} from "../../state/nodes/node-filter.ts";
import {
  completeSelector,
  indexLabels,
  type LabelIndex,
  labelsOfCounts,
} from "../../state/nodes/selector-completion.ts";
import { formatCount } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";

const NO_LABELS: LabelIndex = new Map();
const TITLES = {
  type: "Type",
  approval: "Approval",
  health: "Health",
  connection: "Connection",
  scheduling: "Scheduling",
} as const;

/** Search, selector and states. The choices are stored in the address, so that a view can be bookmarked. */
export function FilterBar({ filter, wrong }: { readonly filter: NodeFilter; readonly wrong: string }) {
  const setSearch = useSetSearch();
  const change = (part: Partial<NodeFilter>) => setSearch(filterToSearch({ ...filter, ...part }));
  return (
    <search className="filters">
      <SearchField onChange={(q) => change({ q })} />
      <SelectorField wrong={wrong} onChange={(labels) => change({ labels })} />
      {STATE_FIELDS.map((field) => {
        const chosen = filter[field];
        const toggle = (word: string) =>
          change({ [field]: chosen.includes(word) ? chosen.filter((one) => one !== word) : [...chosen, word] });
        return (
          <Menu
            key={field}
            look={chosen.length > 0 ? "on" : ""}
            items={STATE_CHOICES[field].map((word) => ({
              label: word.toLowerCase(),
              checked: chosen.includes(word),
              onSelect: () => toggle(word),
            }))}
          >
            {TITLES[field]}
            {chosen.length > 0 && <span className="soft">: {chosen.map((word) => word.toLowerCase()).join(", ")}</span>}
          </Menu>
        );
      })}
      {isFiltered(filter) && (
        <Button look="plain" onClick={() => setSearch(filterToSearch(NO_FILTER))}>
          Clear
        </Button>
      )}
    </search>
  );
}

/**
 * The text of a field that updates the address as the user types. The address can also change in other ways. An older
 * value of the address never overwrites newer typing.
 */
function useFieldText(name: string): readonly [text: string, set: (text: string) => void] {
  const present = useSyncExternalStore(
    history.subscribe,
    () => new URLSearchParams(history.location.search).get(name) ?? "",
  );
  const [typed, setTyped] = useState({ text: present, sent: present });
  const isTyped = typed.sent === present;
  return [isTyped ? typed.text : present, (next) => setTyped({ text: next, sent: next.trim() })];
}

function SearchField({ onChange }: { readonly onChange: (text: string) => void }) {
  const [text, set] = useFieldText("q");
  return (
    <input
      className="input search"
      type="search"
      id="node-search"
      aria-label="Search in names, labels and models"
      placeholder="Search  ( / )"
      value={text}
      onChange={({ target }) => {
        set(target.value);
        onChange(target.value.trim());
      }}
    />
  );
}

/** A field for a label selector that completes keys and values from the fleet. */
function SelectorField({ wrong, onChange }: { readonly wrong: string; readonly onChange: (text: string) => void }) {
  const [text, setText] = useFieldText("labels");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const id = useId();
  const complete = useComplete();
  // Count labels when the field gets the focus, or later when the nodes have loaded.
  const large = useLarge();
  const counted = useRead(["labels"], (signal) => registry.getClusterSummary({ includeLabels: true }, { signal }), {
    enabled: open && large,
  });
  const index = useMemo(() => {
    if (!open || (!large && !complete)) return NO_LABELS;
    return large ? labelsOfCounts(counted.data?.labels ?? []) : indexLabels(fleet.rows.values());
  }, [open, complete, large, counted.data]);
  const found = open ? completeSelector(text, index) : [];
  const set = (next: string) => {
    setText(next);
    setAt(-1);
    onChange(next.trim());
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, -1));
    else if ((event.key === "Enter" || event.key === "Tab") && found[at] !== undefined) set(found[at].text);
    else if (event.key === "Escape" && open) setOpen(false);
    else return;
    if (event.key !== "Tab" || found[at] !== undefined) event.preventDefault();
  };
  return (
    <div className="selector">
      <input
        className="input mono"
        role="combobox"
        aria-label="Label selector"
        aria-expanded={found.length > 0}
        aria-controls={id}
        aria-invalid={wrong !== ""}
        aria-describedby={`${id}-wrong`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        placeholder="zone=a,gpu in (h100),!spot"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => set(event.target.value)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
      <span id={`${id}-wrong`} className="field">
        {wrong !== "" && <span className="wrong">{wrong}</span>}
      </span>
      <div id={id} role="listbox" aria-label="Completions" className={found.length > 0 ? "menu completions" : ""}>
        {found.map((completion, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field above handles keys, as in any combobox.
          <div
            key={completion.text}
            id={`${id}-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === at}
            className="menu-item"
            // Prevent the field from losing the focus, which would close the list.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => set(completion.text)}
          >
            <code className="cut">{completion.label}</code>
            <span className="soft number">{formatCount(completion.nodes)}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
