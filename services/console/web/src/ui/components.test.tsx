// The DOM comes first, because the pages need it when they are imported.
import { withDom } from "../testing/dom.ts";

// The modules under test.

import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type ReactNode, useState } from "react";
import { eventually, type Rendered, render, textOf } from "../testing/render.tsx";
import { CopyCommandButton } from "./copy.tsx";
import { DataTable } from "./data-table.tsx";
import { Check, Field } from "./field.tsx";
import { GivenFacts, Sparkline, StateBar } from "./meters.tsx";
import { Failure, Read } from "./notices.tsx";
import { Facts } from "./panel.tsx";
import { StateMark } from "./state-mark.tsx";
import { Tabs } from "./tabs.tsx";
import { Time } from "./time.tsx";

withDom();

let rendered: Rendered | null = null;
const show = (content: ReactNode): Rendered => {
  rendered = render(content);
  return rendered;
};

afterEach(() => {
  rendered?.unmount();
  rendered = null;
});

describe("StateMark", () => {
  it.each([
    ["KILLED_OOM", "Killed: out of memory", "tone-bad"],
    ["NOT_APPROVED", "Not approved", "tone-muted"],
    ["-", "-", "tone-plain"],
  ])("should show %s as words, with a shape", async (word, words, tone) => {
    const { element, shows } = show(<StateMark word={word} />);
    await shows(words);
    expect(element.querySelector("svg")?.getAttribute("class")).toBe(tone);
  });
});

describe("Sparkline", () => {
  const chart = (values: readonly (number | null)[]) =>
    show(<Sparkline name="Healthy" values={values} whenOf={(at) => `time ${at}`} />);

  it("should have a scale, and describe its range and last value", async () => {
    const { element, shows } = chart([1, 1_200, 7]);
    await shows("1,200 0 Healthy: 7");
    expect(element.querySelector("svg")?.getAttribute("aria-label")).toBe("Healthy: 1 to 1,200");
  });

  it("should draw a gap where values are unknown", async () => {
    const { element, shows } = chart([1, 2, null, null, 3, 4]);
    await shows("Healthy: 4");
    const lines = [...element.querySelectorAll("polyline")].map((line) => line.getAttribute("points"));
    expect(lines).toEqual(["0.00,29.00 20.00,20.00", "80.00,11.00 100.00,2.00"]);
  });

  it("should say that nothing is known, instead of showing 0", async () => {
    const { element, shows } = chart([null, null]);
    await shows("Healthy: unknown");
    expect(element.querySelectorAll("polyline")).toHaveLength(0);
  });

  it("should show each value and its time with the arrow keys", async () => {
    const { element, shows } = chart([5, null, 7]);
    await shows("Healthy: 7");
    const press = (key: string) =>
      element.querySelector("svg")?.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
    press("ArrowLeft");
    await shows("Healthy: unknown at time 1");
    press("ArrowLeft");
    await shows("Healthy: 5 at time 0");
    press("ArrowLeft");
    await shows("Healthy: 5 at time 0");
  });
});

describe("StateBar", () => {
  it("should count every state, and report the chosen one", async () => {
    const chosen: string[] = [];
    const { click, shows } = show(
      <StateBar counts={{ HEALTHY: 1_200 }} words={["HEALTHY", "UNKNOWN"]} onChoose={(word) => chosen.push(word)} />,
    );
    await shows("1,200 healthy 0 unknown");
    await click("0 unknown");
    expect(chosen).toEqual(["UNKNOWN"]);
  });
});

describe("GivenFacts", () => {
  it("should distinguish an unknown total from none", async () => {
    const { shows } = show(
      <GivenFacts
        of={[
          ["Cores", 2, 8, String],
          ["Disk", 3, null, String],
          ["GPUs", 0, 0, String],
        ]}
      />,
    );
    await shows("Cores 2 of 8 reserved Disk 3 reserved (total unknown) GPUs none");
  });
});

describe("Facts", () => {
  it("should leave out what has no value, but keep 0", async () => {
    const { shows, text } = show(
      <Facts
        of={[
          ["Gone", ""],
          ["Also gone", null],
          ["Exit code", 0],
        ]}
      />,
    );
    await shows("Exit code 0");
    expect(text()).toBe("Exit code 0");
  });
});

describe("DataTable", () => {
  it("should name the column of every cell, for narrow screens", async () => {
    const columns = [
      { title: "Node", cell: ({ id }: { readonly id: string }) => id },
      { title: "", cell: () => <button type="button">Details</button> },
    ];
    const { element, shows } = show(
      <DataTable label="Nodes" rows={[{ id: "a" }]} columns={columns} keyOf={({ id }) => id} />,
    );
    await shows("Node Actions a Details");
    expect([...element.querySelectorAll("td")].map((cell) => cell.dataset.title)).toEqual(["Node", ""]);
  });
});

describe("Field", () => {
  it("should show the error instead of the hint", async () => {
    const { element, shows, text } = show(<Field label="Deadline" hint="0s means now" wrong="for example 30m" />);
    await shows("Deadline for example 30m");
    expect(text()).not.toContain("0s means now");
    expect(element.querySelector("input")?.getAttribute("aria-invalid")).toBe("true");
  });
});

describe("Check", () => {
  it("should report its new state", async () => {
    const states: boolean[] = [];
    const { control } = show(
      <Check checked={false} onChange={(on) => states.push(on)}>
        Follow
      </Check>,
    );
    (await control("Follow")).querySelector("input")?.click();
    expect(states).toEqual([true]);
  });
});

const TABS = [
  ["one", "First"],
  ["two", "Second"],
] as const;

function Chosen() {
  const [chosen, setChosen] = useState<"one" | "two">("one");
  return <Tabs tabs={TABS} chosen={chosen} onChoose={setChosen} />;
}

describe("Tabs", () => {
  it("should move with the arrow keys, and wrap around at the ends", async () => {
    const { control } = show(<Chosen />);
    const press = async (name: string, key: string) =>
      (await control(name)).dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
    const selected = (name: string) =>
      eventually(`${name} to be selected`, () =>
        [...document.querySelectorAll("[aria-selected=true]")].find((tab) => textOf(tab) === name),
      );
    await press("First", "ArrowLeft");
    await selected("Second");
    await press("Second", "ArrowRight");
    await selected("First");
  });
});

describe("Read", () => {
  const reading = { error: null, dataUpdatedAt: 0, refetch: () => {} };

  it("should show that it is loading", async () => {
    const { element } = show(<Read from={{ ...reading, data: undefined }}>{() => "never"}</Read>);
    await eventually("a status", () => element.querySelector("[aria-label=Loading]") ?? undefined);
  });

  it("should keep old data when loading fails, and say so", async () => {
    const { shows } = show(
      <Read from={{ ...reading, data: "the last data", error: new Error("out of reach") }}>{(data) => data}</Read>,
    );
    await shows("Data may be stale");
    await shows("the last data");
  });

  it("should offer to try again when nothing was loaded", async () => {
    let tries = 0;
    const { click } = show(<Failure cause={new Error("out of reach")} onRetry={() => (tries += 1)} />);
    await click("Try again");
    expect(tries).toBe(1);
  });
});

describe("Time", () => {
  it("should show no time as a dash", async () => {
    const { shows } = show(<Time ms={null} />);
    await shows("-");
  });

  it("should have the exact time in its title", async () => {
    const { element, shows } = show(<Time ms={Date.now() - 3_600_000} />);
    await shows("1h ago");
    expect(element.querySelector("time")?.title).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
  });
});

describe("CopyCommandButton", () => {
  let copied: string[] = [];
  beforeEach(() => {
    copied = [];
    const writeText = (text: string) => Promise.resolve(copied.push(text));
    Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
  });

  it("should copy the command and confirm it", async () => {
    const { click, shows } = show(<CopyCommandButton text="rollcall node list" />);
    await click("Copy as command");
    await shows("Copied");
    expect(copied).toEqual(["rollcall node list"]);
  });

  it("should offer all commands of a page in one menu", async () => {
    const { click, control, shows } = show(
      <CopyCommandButton text="rollcall job describe web" more={["rollcall job why web"]} />,
    );
    const menu = await control("Copy as command");
    menu.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    await shows("rollcall job describe web rollcall job why web");
    await click("rollcall job why web");
    await shows("Copied");
    expect(copied).toEqual(["rollcall job why web"]);
  });
});
