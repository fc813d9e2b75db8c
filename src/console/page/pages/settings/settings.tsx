/** Settings: of the project, of oneself, of the team, of the organisation. */

import { useAddress } from "../../lib/address.ts";
import { Tabs } from "../../parts/basics.tsx";
import { Page } from "../../parts/page.tsx";
import { words } from "../../words/index.ts";
import { AccountSettings } from "./account.tsx";
import { OrganizationSettings } from "./organization.tsx";
import { ProjectSettings } from "./project.tsx";
import { TeamSettings } from "./team.tsx";

const w = words.settings;
type Tab = keyof typeof w.tabs;

export function Settings() {
  const { query, set } = useAddress();
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "project") as Tab;
  return (
    <Page title={words.frame.pages.settings}>
      <Tabs
        label={w.tabsLabel}
        tabs={Object.entries(w.tabs) as [Tab, string][]}
        current={tab}
        onChoose={(next) => set({ tab: next === "project" ? undefined : next }, true)}
      />
      {tab === "project" && <ProjectSettings />}
      {tab === "account" && <AccountSettings />}
      {tab === "team" && <TeamSettings />}
      {tab === "organization" && <OrganizationSettings />}
    </Page>
  );
}
