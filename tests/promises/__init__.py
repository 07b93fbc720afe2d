"""Promises of the README and of the docs, each with the tests that it may not pass without. `make test` runs them."""

README = {
    "A `202` response means stored: the hit survives `kill -9` and a power loss.": (
        "promises/test_exactly_once.py::test_kills_under_load_lose_and_repeat_no_acknowledged_hit",
        "promises/test_power_loss.py::test_post_is_on_the_disk_with_all_its_folders_when_it_is_acknowledged",
        "promises/test_power_loss.py::test_power_loss_right_after_load_and_upkeep_loses_nothing",
    ),
    "Every view is counted exactly once and is in the next report.": (
        "promises/test_exactly_once.py::test_kills_under_load_lose_and_repeat_no_acknowledged_hit",
        "promises/test_import_once.py::test_kills_lose_and_repeat_no_line",
        "promises/test_reclassify.py::test_exports_are_exact_while_stored_hits_are_reclassified",
        "promises/test_as_of.py::test_pages_of_a_moment_add_up_to_its_totals_while_hits_arrive",
        "service/test_spine.py::test_hit_is_in_the_next_export_and_still_after_a_restart",
    ),
    "Every number can be explained: each stored hit names the rule that classified it.": (
        "promises/test_every_number.py::test_each_row_leads_to_hits_whose_rules_classify_repeats",
        "promises/test_every_number.py::test_each_row_of_visitors_and_visits_leads_to_its_hits",
        "promises/test_every_number.py::test_each_row_of_errors_cost_and_events_is_that_of_its_table",
        "promises/test_every_number.py::test_conversions_of_each_goal_lead_to_its_hits_and_events",
        "promises/test_every_number.py::test_coverage_leads_to_the_first_and_last_hits_and_the_days_between",
    ),
    "The data is plain Parquet in Delta Lake tables, for DuckDB, Polars, Spark or any other tool.": (
        "docs/test_analysis.py::test_each_way_of_reading_returns_the_rows_that_the_page_claims",
        (
            "promises/test_upgrade.py::"
            "test_counts_are_complete_before_and_after_the_waiting_hits_are_loaded_and_stored_daily_views_removed"
        ),
    ),
}
DOCS = {
    "No address is stored.": (
        "promises/test_addresses.py::test_no_file_has_the_address_of_a_visitor_and_agents_are_verified_by_it",
    ),
    "A lost store is refused, and `recover` goes on without it.": (
        (
            "promises/test_recovery.py::"
            "test_every_command_refuses_a_hot_log_that_is_behind_the_lake_and_the_advice_counts_no_line_twice"
        ),
        "promises/test_recovery.py::test_missing_lake_has_the_hits_that_the_hot_log_retains_once_its_loss_is_accepted",
        "promises/test_lost_control.py::test_empty_postgresql_database_beside_hits_is_refused",
    ),
}
"""Promises of the other docs."""
