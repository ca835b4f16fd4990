import { StoreUnavailableError } from "../../libs/errors/src/index.ts";
import type { ReservedStore, Store } from "../../libs/store/src/index.ts";

/**
 * A store whose reserved connections can be blocked. Those connections read the log. Connections for
 * calls always work.
 */
export class BufferedLog {
  readonly store: Store;
  #isHeld = false;

  constructor(store: Store) {
    const { reserved } = store;
    const isHeld = () => this.#isHeld;
    const held: ReservedStore = {
      ...reserved,
      get db() {
        if (isHeld()) throw new StoreUnavailableError("the log cannot be read");
        return reserved.db;
      },
    };
    this.store = { ...store, reserved: held };
  }

  /** Block reading from now on. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
  }
}
