import { describe, expect, it } from "@jest/globals";
import { failOnceAtEachCall, stopAtEachCall } from "./faults.ts";

/** A disk with one number, written to a new file first and then renamed. */
class Disk {
  fresh: number | null = null;
  value = 0;

  async write(value: number): Promise<void> {
    this.fresh = value;
  }

  async rename(): Promise<void> {
    if (this.fresh === null) throw new Error("there is no new file");
    this.value = this.fresh;
    this.fresh = null;
  }
}

describe("failOnceAtEachCall()", () => {
  it("should repeat a scenario for each call, with a failure before and after its effect", async () => {
    const seen: string[] = [];
    const calls = await failOnceAtEachCall(async (ports) => {
      const disk = new Disk();
      const wrapped = ports.wrap("disk", disk);
      await ports.attempt(async () => {
        await wrapped.write(1);
        await wrapped.rename();
      });
      seen.push(`${ports.failed} ${disk.value}`);
    });
    expect(calls).toEqual(["disk.write", "disk.rename"]);
    expect(seen).toEqual(["null 1", "disk.write 1", "disk.write 1", "disk.rename 1", "disk.rename 1"]);
  });

  it("should say which failure broke a promise", async () => {
    const scenario = failOnceAtEachCall(
      async (ports) => {
        const disk = ports.wrap("disk", new Disk());
        await disk.write(1).catch(() => {});
        await disk.rename();
      },
      { kinds: ["before"] },
    );
    await expect(scenario).rejects.toThrow("call 0 (disk.write) failed before its effect: there is no new file");
  });

  it("should fail if a repeated scenario does not make the call", async () => {
    let runs = 0;
    const scenario = failOnceAtEachCall(async (ports) => {
      runs += 1;
      const disk = ports.wrap("disk", new Disk());
      if (runs === 1) await disk.write(1);
    });
    await expect(scenario).rejects.toThrow("no call of the repeated scenario failed");
  });

  it("should wrap what a port opens, and throw at once from methods without a promise", async () => {
    const port = { open: async () => ({ read: async () => "text" }), now: () => 7, name: "port" };
    const calls = await failOnceAtEachCall(async (ports) => {
      const wrapped = ports.wrap("port", port, { sync: ["now"], opens: ["open"] });
      expect(wrapped.name).toBe("port");
      expect(await ports.attempt(async () => (await wrapped.open()).read())).toBe("text");
      expect(await ports.attempt(async () => wrapped.now())).toBe(7);
    });
    expect(calls).toEqual(["port.open", "port.open.read", "port.now"]);
  });
});

describe("stopAtEachCall()", () => {
  it("should stop a program before each call, and start it again with the same disk and processes", async () => {
    const closed: string[] = [];
    const calls = await stopAtEachCall({
      world: async () => new Disk(),
      life: async (disk, ports) => {
        const wrapped = ports.wrap("disk", disk);
        ports.onStop(() => {
          closed.push(ports.failed ?? "");
        });
        await wrapped.write(1);
        await wrapped.rename();
      },
      check: ({ value }) => expect(value).toBe(1),
    });
    expect(calls).toEqual(["disk.write", "disk.rename"]);
    expect(closed).toEqual(["disk.write", "disk.rename"]);
  });

  it("should notice a program that does not finish what it began before it was stopped", async () => {
    const program = stopAtEachCall({
      world: async () => new Disk(),
      life: async (disk, ports) => {
        const wrapped = ports.wrap("disk", disk);
        // The number is on its way to the disk, and taken for written.
        if (disk.fresh !== null) return;
        await wrapped.write(1);
        await wrapped.rename();
      },
      check: ({ value }) => expect(value).toBe(1),
    });
    await expect(program).rejects.toThrow("the program was stopped before call 1 (disk.rename)");
  });
});
