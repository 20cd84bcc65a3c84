"""The pages that people look at: the catalog as HTML, behind Airflow's sign-in, rendered on the server.

A page is data (`page.Page`), made by a function of `views` from the store; one template draws them all. Pages need no
outside host and work without scripts.
"""
