"""Agent jobs of a project: prompts, logs and pull requests.

- `readiness`: requirements of a project's agent jobs that are not met, and the settings of these jobs.
- `prompt_form`: a posted prompt, which starts a job or continues one.
- `job_view`: a job and its turns in the words of the pages.
- `job_list`: the jobs of a project, and the form that starts one.
- `job_page`: one job: its prompts, its log as it grows, follow-ups, cancel and archive.
"""
