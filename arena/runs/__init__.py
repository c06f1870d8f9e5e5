"""Run configurations, the runner, and run folders on disk.

In: a YAML file (`config.py`). Out: a folder with one atomic record per trial (`records.py`), which a later call resumes
(`identity.py` says what must agree). The runner has no device: judges are asked through `service/judge_pool.py`.
"""
