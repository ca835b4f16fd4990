export { keeperSocket } from "./keeper-places.ts";
export { type KeeperSettings, settingsDigest, startKeeper } from "./start-keeper.ts";
