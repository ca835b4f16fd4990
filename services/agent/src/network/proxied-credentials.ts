import type { Socket } from "node:net";
import { ChannelCredentials } from "@grpc/grpc-js";

type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>;

/**
 * Credentials of a channel whose connections lead to a proxy: a tunnel is opened over each, and the credentials that
 * are wrapped secure what goes through it. grpc-js has support of its own for proxies, which reads other variables than
 * registrations go by, and says nothing of a proxy's refusal but in the log of the process.
 */
export class ProxiedCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #open: (socket: Socket) => Promise<Socket>;

  constructor(inner: ChannelCredentials, open: (socket: Socket) => Promise<Socket>) {
    super();
    this.#inner = inner;
    this.#open = open;
  }

  override _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials["_createSecureConnector"]>): Connector {
    const inner = this.#inner._createSecureConnector(...args);
    return {
      connect: async (socket) => inner.connect(await this.#open(socket)),
      waitForReady: () => inner.waitForReady(),
      getCallCredentials: () => inner.getCallCredentials(),
      destroy: () => inner.destroy(),
    };
  }
}
