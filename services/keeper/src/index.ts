export { keeperSocket } from "./keeper-places.ts";
export { closedGroupOf } from "./launch/closed-groups.ts";
export { type KeeperSettings, settingsDigest, startKeeper } from "./start-keeper.ts";
