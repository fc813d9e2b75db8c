/** The current project, and a popover that searches the others and leads to a new one. */

import { useLocation } from "preact-iso";
import { to } from "../lib/router.ts";
import { chooseProject, isAdmin, project, projects } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { ChoicePopover } from "./choice-popover.tsx";
import { Icon } from "./icons.tsx";

const w = messages.frame;

/** @param page stays open in another project */
export function ProjectSwitcher({ page }: { page: string }) {
  const { route } = useLocation();
  return (
    <ChoicePopover
      class="project-switcher"
      buttonClass="project-name"
      buttonLabel={w.currentProject(project.value?.name ?? "")}
      title={project.value?.name}
      face={
        <>
          <span>{project.value?.name}</span>
          <Icon name="down" size={14} />
        </>
      }
      label={w.project}
      searchLabel={w.searchProjects}
      nothingFound={w.noProject}
      hasSearch
      value={project.value?.id}
      choices={projects.value.map(({ id, name }) => [id, name] as const)}
      onChoose={(chosen) => {
        chooseProject(chosen);
        route(to(page));
      }}
      footer={(close) =>
        isAdmin.value && (
          <button
            type="button"
            class="new-project"
            onClick={() => {
              close();
              route(to("settings", { new: "project" }));
            }}
          >
            {messages.settings.newProject}
          </button>
        )
      }
    />
  );
}
