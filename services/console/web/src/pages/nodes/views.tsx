import { useState } from "react";
import { goTo } from "../../app/address.ts";
import { parseViews, type SavedView } from "../../state/nodes/saved-views.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Menu } from "../../ui/menu.tsx";

const KEY = "rollcall.node-views";

const GIVEN: readonly SavedView[] = [
  { name: "All machines", query: "" },
  { name: "Unhealthy or unknown", query: "approval=approved&health=unhealthy,unknown" },
  { name: "Waiting for approval", query: "approval=pending" },
  { name: "Cannot take work", query: "approval=approved&scheduling=ineligible,draining,drained,unconfirmed" },
  { name: "Disconnected", query: "connection=disconnected" },
];

/** Named views. A view is an address: users can share it, and this browser stores it. */
export function Views({ search }: { readonly search: Readonly<Record<string, string>> }) {
  const [kept, setKept] = useState(() => parseViews(localStorage.getItem(KEY)));
  const [naming, setNaming] = useState(false);
  const query = new URLSearchParams(search).toString();
  const keep = (views: readonly SavedView[]) => {
    localStorage.setItem(KEY, JSON.stringify(views));
    setKept(views);
  };
  const current = kept.find((view) => view.query === query);
  return (
    <>
      <Menu
        items={[
          ...[...GIVEN, ...kept].map((view) => ({
            label: view.name,
            hint: view.query === query ? "shown" : "",
            onSelect: () => goTo(view.query === "" ? "/nodes" : `/nodes?${view.query}`),
          })),
          null,
          { label: "Save this view", onSelect: () => setNaming(true) },
          ...(current === undefined
            ? []
            : [{ label: `Delete ${current.name}`, onSelect: () => keep(kept.filter((view) => view !== current)) }]),
        ]}
      >
        Views
      </Menu>
      {naming && (
        <NameView
          onClose={() => setNaming(false)}
          onName={(name) => {
            keep([...kept.filter((view) => view.name !== name), { name, query }].slice(-MOST_VIEWS));
            setNaming(false);
          }}
        />
      )}
    </>
  );
}

const MOST_VIEWS = 30;

function NameView({ onClose, onName }: { readonly onClose: () => void; readonly onName: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onName(name.trim());
        }}
      >
        <Field
          label="Name"
          hint="Stored only in this browser. To share the view, send its link."
          maxLength={64}
          value={name}
          onChange={(event) => setName(event.target.value)}
          autoFocus
        />
        <div className="actions">
          <CopyButton text={window.location.href}>Copy link</CopyButton>
          <Button look="primary" type="submit" disabled={name.trim() === ""}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
