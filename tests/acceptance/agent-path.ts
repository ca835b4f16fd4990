import { FaultProxy } from "../../libs/testkit/src/wire/fault-proxy.ts";
import type { WorkFixture } from "../../services/rollcall/src/testing/work-fixture.ts";

/**
 * A separate path from an agent to the control plane, through another address of the loopback interface with
 * the same ports.
 */
export class AgentPath {
  readonly server: string;
  readonly #proxies: readonly FaultProxy[];

  private constructor(server: string, proxies: readonly FaultProxy[]) {
    this.server = server;
    this.#proxies = proxies;
  }

  static async open({ addresses }: WorkFixture, host: string): Promise<AgentPath> {
    const ports = [addresses.server, addresses.agentsAddress].map((address) => Number(address.split(":")[1]));
    const proxies = await Promise.all(ports.map((port) => FaultProxy.start(port, port, host)));
    return new AgentPath(`${host}:${ports[0]}`, proxies);
  }

  cut(isCut: boolean): void {
    for (const proxy of this.#proxies) proxy.silence(isCut);
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }
}
