import { shareLinkOperations } from "../../src/operations/share-links.ts";
import { operationGroup } from "../operations/command.ts";

export const shareLinks = operationGroup(
  "share-links",
  "Manage links that show one dashboard or insight without signing in.",
  ["share-links create --dashboard 3 --name Board", "share-links revoke 1"],
  shareLinkOperations,
);
